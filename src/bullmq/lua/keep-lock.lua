-- Takes the lock of a job back if it has expired.
-- Returns 1, or 0 when the job is not the token's any more.
-- include: bullmq-layout.lua
local queue, id, token, lockMs = unpack(ARGV)
return bull.keep(queue, id, token, lockMs) and 1 or 0
