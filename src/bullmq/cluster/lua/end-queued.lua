-- Ends a task that has not begun. What follows are the fields and their values.
-- Returns 1, or 0 when it has begun or ended.
-- include: cluster.lua
local id, logMs, maxRetained, message = unpack(ARGV, 1, 4)
local fields = 5
local task = redis.call('HMGET', own..'task:'..id, 'status', 'instanceId', 'seq')
if task[1] ~= 'queued' then return 0 end
for i = fields, #ARGV, 2 do redis.call('HSET', own..'task:'..id, ARGV[i], ARGV[i + 1]) end
local seq = task[3] + 1
redis.call('HSET', own..'task:'..id, 'seq', seq)
append(id, task[2], seq, message)
keepEnd(id, task[2], logMs, maxRetained)
return 1
