-- Begins a run on a worker: renews the lock of its job, and reads what its host has said by now.
-- Returns what `TAKE` does, or nothing when the job is another's.
-- include: bullmq-layout.lua, news.lua
local agent, down = unpack(KEYS)
local queue, id, token, lockMs = unpack(ARGV)
if not bull.extend(queue, id, token, lockMs) and not bull.seize(queue, id, token, lockMs) then return false end
return news(agent, down, '0-0')
