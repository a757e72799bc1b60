-- Finds the jobs of a queue whose workers have died: they are active, and their locks have expired.
-- Returns their ids.
-- include: bullmq-layout.lua
local queue = unpack(ARGV)
return bull.silent(queue)
