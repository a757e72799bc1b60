-- The task is a job now: its submission may be answered.
-- Returns 1, or 0 when it was given up meanwhile.
-- include: cluster.lua
local task = unpack(ARGV)
local inst = redis.call('HGET', own..'task:'..task, 'instanceId')
if not inst then return 0 end
redis.call('ZREM', own..'joining', task)
announce('t', 'work', 'inst', inst)
return 1
