-- Reads what is new of a run for its host. `after` is the last entry of `up` that the host has; `host` is its channel (empty: the one that the job names),
-- `seen` the sums that it has applied since its last look (empty: none).
-- Returns the state of the job; its output or why it failed; the details of a failure; entries of `up`; open questions as number and text; the sums of the
-- run, and those that a host has applied.
-- include: bullmq-layout.lua
local agent, up = unpack(KEYS)
local queue, id, after, host, seen, keptSeconds, mostEntries = unpack(ARGV)
local state, ending = bull.read(queue, id)
if state == 'missing' then return { state } end
if host ~= '' then redis.call('HSET', agent, 'host', host) end
if seen ~= '' then redis.call('HSET', agent, 'seen', seen) end
redis.call('EXPIRE', agent, keptSeconds)
local entries = redis.call('XRANGE', up, '(' .. after, '+', 'COUNT', mostEntries)
local questions = {}
local fields = redis.call('HGETALL', agent)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'q:' then
    questions[#questions + 1] = string.sub(fields[i], 3)
    questions[#questions + 1] = fields[i + 1]
  end
end
local more = redis.call('HMGET', agent, 'failure', 'spent', 'seen')
return { state, ending, more[1] or '', entries, questions, more[2] or '', more[3] or '' }
