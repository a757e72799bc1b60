-- What a host has said to a run: the reason of a cancellation, why to conclude, answers as number and text, and the messages after one.
-- The messages up to that one have arrived: they are removed.
local function news(agent, down, after)
  local fields = redis.call('HGETALL', agent)
  local cancel, wrapUp, answers = false, false, {}
  for i = 1, #fields, 2 do
    if fields[i] == 'cancel' then cancel = fields[i + 1] end
    if fields[i] == 'wrapUp' then wrapUp = fields[i + 1] end
    if string.sub(fields[i], 1, 2) == 'a:' then
      answers[#answers + 1] = string.sub(fields[i], 3)
      answers[#answers + 1] = fields[i + 1]
    end
  end
  if after ~= '0-0' then
    local taken = redis.call('XRANGE', down, '-', after)
    for i = 1, #taken do redis.call('XDEL', down, taken[i][1]) end
  end
  return { cancel, wrapUp, answers, redis.call('XRANGE', down, '-', '+') }
end
