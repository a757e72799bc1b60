-- Takes the lock of a job that no living connection has.
-- Returns 1, or 0 when it has ended or is locked.
-- include: ../../lua/bullmq-layout.lua
local queue, id, token, lifeMs = unpack(ARGV)
return bull.seize(queue, id, token, lifeMs) and 1 or 0
