-- What the scripts of a cluster share. Times are those of Redis, so that the clocks of the nodes do not matter.
local own = unpack(KEYS)
local function now() local t = redis.call('TIME'); return t[1] * 1000 + math.floor(t[2] / 1000) end
-- The same name as in cluster-keys.ts.
local function queueOf(prefix, inst)
  return prefix..':i-'..inst:gsub("[^%w%-_.!~*'()]", function(c) return string.format('%%%02X', c:byte()) end)
end
local function announce(...)
  redis.call('XADD', own..'feed', 'MAXLEN', '~', 20000, '*', 'n', redis.call('INCR', own..'n'), ...)
end
local function isConnected(inst)
  local node = redis.call('HGET', own..'inst:'..inst, 'node')
  return node and node ~= '' and redis.call('EXISTS', own..'node:'..node) == 1
end
local function setLost(inst)
  local key = own..'inst:'..inst
  redis.call('HSET', key, 'node', '', 'lostAt', now())
  if redis.call('HEXISTS', key, 'secret') == 1 then redis.call('SADD', own..'waiting', inst) end
  announce('t', 'instance', 'inst', inst, 'node', '')
end
local function isOver(status) return status == 'completed' or status == 'failed' or status == 'cancelled' end
local function forget(id)
  local task = redis.call('HMGET', own..'task:'..id, 'instanceId', 'bytes', 'key')
  if not task[1] then redis.call('ZREM', own..'ended', id); return end
  redis.call('DEL', own..'task:'..id, own..'log:'..id)
  for _, set in ipairs({'tasks', 'ended', 'joining', 'of:'..task[1], 'live:'..task[1]}) do redis.call('ZREM', own..set, id) end
  redis.call('DECRBY', own..'bytes', task[2] or 0)
  if task[3] and task[3] ~= '' then redis.call('DEL', own..'key:'..task[3]) end
end
local function forgetOldest()
  local oldest = redis.call('ZRANGE', own..'ended', 0, 0)[1]
  if oldest then forget(oldest) end
  return oldest
end
local function append(id, inst, seq, message)
  redis.call('XADD', own..'log:'..id, seq..'-0', 'm', message)
  announce('t', 'event', 'id', id, 'inst', inst, 'seq', seq, 'm', #message <= 4096 and message or '')
end
local function keepEnd(id, inst, logMs, maxRetained)
  redis.call('ZREM', own..'live:'..inst, id)
  redis.call('ZADD', own..'ended', now(), id)
  redis.call('PEXPIRE', own..'log:'..id, logMs)
  while redis.call('ZCARD', own..'ended') > tonumber(maxRetained) do forgetOldest() end
end
