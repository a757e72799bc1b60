-- Says something to a run. `what` is `message`, `answer` or `wrapUp`; `number` is that of a question, or of a message and its sender. What is sent again,
-- since its answer was lost, is known by its number and changes nothing.
-- Returns 1 when it is stored, 0 when nobody waits for it, and -1 when there is no room.
-- include: bullmq-layout.lua
local agent, down = unpack(KEYS)
local queue, id, keptSeconds, workers, what, number, text, mostEntries, mostBytes = unpack(ARGV)
local state = bull.read(queue, id)
if state == 'completed' or state == 'failed' or state == 'interrupted' then return 0 end
if what == 'answer' then
  if redis.call('HDEL', agent, 'q:' .. number) == 0 then return 0 end
  redis.call('HSET', agent, 'a:' .. number, text)
elseif what == 'wrapUp' then
  redis.call('HSET', agent, 'wrapUp', text)
elseif redis.call('HGET', agent, 'told') ~= number then
  local bytes = #text
  local waiting = redis.call('XRANGE', down, '-', '+')
  for i = 1, #waiting do bytes = bytes + #waiting[i][2][2] end
  if #waiting >= tonumber(mostEntries) or bytes > tonumber(mostBytes) then return -1 end
  redis.call('XADD', down, '*', 'm', text)
  redis.call('HSET', agent, 'told', number)
  redis.call('EXPIRE', down, keptSeconds)
end
redis.call('EXPIRE', agent, keptSeconds)
redis.call('PUBLISH', workers, id)
return 1
