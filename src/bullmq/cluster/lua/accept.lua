-- Takes a task, if there is room; it becomes a job next. `asked` is the instance that the client named (empty: any), `key` its idempotency key (empty: none).
-- Returns a code, and then the task, its instance and its position. KNOWN: the key was used for this task; JOINING: and it is not confirmed yet; REUSED: the
-- key was used for another task.
-- include: cluster.lua
local asked, record, summary, createdAt, maxQueue, bytes, maxBytes, key = unpack(ARGV)
local inst = asked
if key ~= '' then
  local known = redis.call('GET', own..'key:'..key)
  if known and redis.call('EXISTS', own..'task:'..known) == 1 then
    local place = redis.call('HMGET', own..'task:'..known, 'instanceId', 'position', 'record', 'asked')
    if place[3] ~= record or place[4] ~= asked then return {'REUSED'} end
    return {redis.call('ZSCORE', own..'joining', known) and 'JOINING' or 'KNOWN', known, place[1], tonumber(place[2])}
  end
end
if inst == '' then
  for _, one in ipairs(redis.call('ZRANGE', own..'instances', 0, -1)) do
    if isConnected(one) then inst = one break end
  end
  if inst == '' then return {'NO_INSTANCE'} end
elseif redis.call('EXISTS', own..'inst:'..inst) == 0 then return {'INVALID_INSTANCE'}
elseif not isConnected(inst) then return {'NOT_CONNECTED'} end
local depth = redis.call('ZCARD', own..'live:'..inst)
if depth >= tonumber(maxQueue) then return {'QUEUE_FULL'} end
while tonumber(redis.call('GET', own..'bytes') or 0) + bytes > tonumber(maxBytes) do
  if not forgetOldest() then return {'NO_ROOM'} end
end
local place = redis.call('INCR', own..'place')
local digits, rest, text = '0123456789abcdefghijklmnopqrstuvwxyz', place, ''
repeat
  text = digits:sub(rest % 36 + 1, rest % 36 + 1)..text
  rest = math.floor(rest / 36)
until rest == 0
local id = 'task_'..createdAt..'_'..text
redis.call('HSET', own..'task:'..id, 'record', record, 'summary', summary, 'instanceId', inst, 'asked', asked, 'place', place,
  'position', depth + 1, 'status', 'queued', 'createdAt', createdAt, 'seq', 0, 'index', 0, 'bytes', bytes, 'key', key)
redis.call('ZADD', own..'tasks', place, id)
redis.call('ZADD', own..'of:'..inst, place, id)
redis.call('ZADD', own..'live:'..inst, place, id)
redis.call('ZADD', own..'joining', now(), id)
redis.call('INCRBY', own..'bytes', bytes)
if key ~= '' then redis.call('SET', own..'key:'..key, id) end
return {'OK', id, inst, depth + 1}
