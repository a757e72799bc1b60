-- Gives up a task that did not become a job, and that was not answered yet.
-- Returns 1, or 0 when it is confirmed, begun, or younger than `leastAgeMs`.
-- include: cluster.lua
local task, leastAgeMs = unpack(ARGV)
local since = redis.call('ZSCORE', own..'joining', task)
if not since or since + leastAgeMs > now() or redis.call('HGET', own..'task:'..task, 'status') ~= 'queued' then return 0 end
forget(task)
return 1
