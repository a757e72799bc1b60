-- Takes the lock of a job whose worker has died, and notes why its run has failed. The job fails next, under this lock (`Job.moveToFailed`).
-- Returns 1, or 0 when there is nothing to give up.
-- include: bullmq-layout.lua
local agent = unpack(KEYS)
local queue, id, token, lockMs, failure, keptSeconds = unpack(ARGV)
if not bull.seize(queue, id, token, lockMs) then return 0 end
redis.call('HSET', agent, 'failure', failure)
redis.call('EXPIRE', agent, keptSeconds)
return 1
