-- Publishes to the host of a job that it has ended; with its output when that is small enough and its run has said nothing before: then there is nothing left
-- to look for. `host` is the channel of the host that sent the job.
-- include: bullmq-layout.lua
local agent = unpack(KEYS)
local queue, id, host, mostBytes = unpack(ARGV)
local state, output = bull.read(queue, id)
local said = redis.call('HMGET', agent, 'host', 'bytes')
local message = id
if state == 'completed' and not said[2] and #output <= tonumber(mostBytes) then message = id .. '\n' .. output end
redis.call('PUBLISH', said[1] or host, message)
return 1
