-- A node lives, and holds its instances and its locks. What follows are the id, the epoch and the queue of each instance (`instances` in all), and then the
-- task, its queue and the token of each run.
-- Returns for each instance `ok`, `work` when tasks wait for it, `lost`, or `taken` by another node; for each run `+` and why it is to be cancelled, `ok`, or
-- `lost`.
-- include: ../../lua/bullmq-layout.lua, cluster.lua
local node, life, instances = unpack(ARGV, 1, 3)
redis.call('SET', own..'node:'..node, 1, 'PX', life)
local answers = {}
local at = 4
for _ = 1, tonumber(instances) do
  local one = redis.call('HMGET', own..'inst:'..ARGV[at], 'node', 'epoch')
  if one[1] == node and one[2] == ARGV[at + 1] then
    answers[#answers + 1] = bull.hasWaiting(ARGV[at + 2]) and 'work' or 'ok'
  elseif not one[2] or one[2] == ARGV[at + 1] then answers[#answers + 1] = 'lost'
  else answers[#answers + 1] = 'taken' end
  at = at + 3
end
for i = at, #ARGV, 3 do
  if not bull.extend(ARGV[i + 1], ARGV[i], ARGV[i + 2], life) then answers[#answers + 1] = 'lost'
  else
    local why = redis.call('HGET', own..'task:'..ARGV[i], 'cancel')
    answers[#answers + 1] = why and '+'..why or 'ok'
  end
end
return answers
