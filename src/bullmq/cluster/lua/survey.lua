-- Finds what nobody looks after, forgets instances that did not come back, and tasks that ended long ago. The next look within `againMs` finds nothing (0: it
-- does). `prefix` is that of the queues.
-- Returns for each finding `stalled`, the instance and the job; `awaited`, the instance and its tasks; `joining`, nothing and the tasks.
-- include: ../../lua/bullmq-layout.lua, cluster.lua
local prefix, graceMs, joinMs, retentionMs, againMs = unpack(ARGV)
if tonumber(againMs) > 0 and not redis.call('SET', own..'surveyed', 1, 'NX', 'PX', againMs) then return {} end
local at = now()
local found = {}
local nodes = {}
local function lives(node)
  if nodes[node] == nil then nodes[node] = redis.call('EXISTS', own..'node:'..node) == 1 end
  return nodes[node]
end
for _, inst in ipairs(redis.call('ZRANGE', own..'instances', 0, -1)) do
  local key = own..'inst:'..inst
  local one = redis.call('HMGET', key, 'node', 'lostAt')
  local queue = queueOf(prefix, inst)
  if one[1] and one[1] ~= '' and not lives(one[1]) then
    setLost(inst)
  elseif one[1] == '' and one[2] and one[2] + graceMs <= at then
    local waiting = redis.call('ZRANGE', own..'live:'..inst, 0, 99)
    if #waiting > 0 then
      found[#found + 1] = 'awaited'; found[#found + 1] = inst; found[#found + 1] = table.concat(waiting, ' ')
    elseif bull.isIdle(queue) then
      bull.obliterate(queue)
      redis.call('DEL', key)
      redis.call('ZREM', own..'instances', inst)
      redis.call('SREM', own..'waiting', inst)
      announce('t', 'forgotten', 'inst', inst)
    end
  end
  for _, job in ipairs(bull.silent(queue)) do
    found[#found + 1] = 'stalled'; found[#found + 1] = inst; found[#found + 1] = job
  end
end
local given = redis.call('ZRANGEBYSCORE', own..'joining', '-inf', at - joinMs, 'LIMIT', 0, 100)
if #given > 0 then found[#found + 1] = 'joining'; found[#found + 1] = ''; found[#found + 1] = table.concat(given, ' ') end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', own..'ended', '-inf', at - retentionMs, 'LIMIT', 0, 1000)) do forget(id) end
return found
