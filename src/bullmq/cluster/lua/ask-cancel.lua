-- Asks the node that runs a task to cancel it.
-- Returns 1, or 0 when the task does not run.
-- include: cluster.lua
local task, reason = unpack(ARGV)
local status = redis.call('HGET', own..'task:'..task, 'status')
if status ~= 'running' then return 0 end
redis.call('HSET', own..'task:'..task, 'cancel', reason)
announce('t', 'cancel', 'id', task, 'm', reason)
return 1
