-- Stores the cancellation of a run, and then tells the workers of it. No worker begins a run whose cancellation is stored, also when its job is added later.
-- Returns the state of the job; one that has ended is not cancelled.
-- include: bullmq-layout.lua
local agent = unpack(KEYS)
local queue, id, reason, keptSeconds, workers = unpack(ARGV)
local state = bull.read(queue, id)
if state == 'completed' or state == 'failed' or state == 'interrupted' then return state end
redis.call('HSET', agent, 'cancel', reason)
redis.call('EXPIRE', agent, keptSeconds)
redis.call('PUBLISH', workers, id)
return state
