-- Takes the lock of a job from an earlier connection of its instance.
-- Returns 1, or 0 when the instance has a later connection, or the job has ended.
-- include: ../../lua/bullmq-layout.lua, cluster.lua
local queue, id, token, lifeMs, inst, epoch = unpack(ARGV)
if redis.call('HGET', own..'inst:'..inst, 'epoch') ~= epoch or bull.holder(queue, id) == token then return 0 end
return bull.replace(queue, id, token, lifeMs) and 1 or 0
