/**
 * What a cluster changes in Redis, each as one step.
 *
 * A task runs while the lock of its job is held by the token of one connection of its instance (`<node>:<epoch>`): `begin` and `record` change nothing for
 * another token (N1), nor for a task that has ended (S1). Times are those of Redis, so that the clocks of the nodes do not matter.
 */
import { script } from '../script.js'

const PRELUDE = `
local P = KEYS[1]
local function now() local t = redis.call('TIME'); return t[1] * 1000 + math.floor(t[2] / 1000) end
local function queueOf(prefix, inst)
  return prefix..':i-'..inst:gsub("[^%w%-_.!~*'()]", function(c) return string.format('%%%02X', c:byte()) end)
end
local function announce(...)
  redis.call('XADD', P..'feed', 'MAXLEN', '~', 20000, '*', 'n', redis.call('INCR', P..'n'), ...)
end
local function isConnected(inst)
  local node = redis.call('HGET', P..'inst:'..inst, 'node')
  return node and node ~= '' and redis.call('EXISTS', P..'node:'..node) == 1
end
local function setLost(inst)
  local key = P..'inst:'..inst
  redis.call('HSET', key, 'node', '', 'lostAt', now())
  if redis.call('HEXISTS', key, 'secret') == 1 then redis.call('SADD', P..'waiting', inst) end
  announce('t', 'instance', 'inst', inst, 'node', '')
end
local function isOver(status) return status == 'completed' or status == 'failed' or status == 'cancelled' end
local function forget(id)
  local task = redis.call('HMGET', P..'task:'..id, 'instanceId', 'bytes', 'key')
  if not task[1] then redis.call('ZREM', P..'ended', id); return end
  redis.call('DEL', P..'task:'..id, P..'log:'..id)
  for _, set in ipairs({'tasks', 'ended', 'joining', 'of:'..task[1], 'live:'..task[1]}) do redis.call('ZREM', P..set, id) end
  redis.call('DECRBY', P..'bytes', task[2] or 0)
  if task[3] and task[3] ~= '' then redis.call('DEL', P..'key:'..task[3]) end
end
local function forgetOldest()
  local oldest = redis.call('ZRANGE', P..'ended', 0, 0)[1]
  if oldest then forget(oldest) end
  return oldest
end
local function append(id, inst, seq, message)
  redis.call('XADD', P..'log:'..id, seq..'-0', 'm', message)
  announce('t', 'event', 'id', id, 'inst', inst, 'seq', seq, 'm', #message <= 4096 and message or '')
end
local function keepEnd(id, inst, logMs, maxRetained)
  redis.call('ZREM', P..'live:'..inst, id)
  redis.call('ZADD', P..'ended', now(), id)
  redis.call('PEXPIRE', P..'log:'..id, logMs)
  while redis.call('ZCARD', P..'ended') > tonumber(maxRetained) do forgetOldest() end
end
`

/** Takes a task, if there is room; it becomes a job next. 'KNOWN': its key was used; 'JOINING': and that task is not confirmed yet; 'REUSED': for another task. instance, submission, time, most tasks, bytes, most bytes, key, request */
export const ACCEPT = script(`${PRELUDE}
local inst, record, createdAt, maxQueue, bytes, maxBytes, key, summary = unpack(ARGV)
local asked = inst
if key ~= '' then
  local known = redis.call('GET', P..'key:'..key)
  if known and redis.call('EXISTS', P..'task:'..known) == 1 then
    local place = redis.call('HMGET', P..'task:'..known, 'instanceId', 'position', 'record', 'asked')
    if place[3] ~= record or place[4] ~= asked then return {'REUSED'} end
    return {redis.call('ZSCORE', P..'joining', known) and 'JOINING' or 'KNOWN', known, place[1], tonumber(place[2])}
  end
end
if inst == '' then
  for _, one in ipairs(redis.call('ZRANGE', P..'instances', 0, -1)) do
    if isConnected(one) then inst = one break end
  end
  if inst == '' then return {'NO_INSTANCE'} end
elseif redis.call('EXISTS', P..'inst:'..inst) == 0 then return {'INVALID_INSTANCE'}
elseif not isConnected(inst) then return {'NOT_CONNECTED'} end
local depth = redis.call('ZCARD', P..'live:'..inst)
if depth >= tonumber(maxQueue) then return {'QUEUE_FULL'} end
while tonumber(redis.call('GET', P..'bytes') or 0) + bytes > tonumber(maxBytes) do
  if not forgetOldest() then return {'NO_ROOM'} end
end
local place = redis.call('INCR', P..'place')
local digits, rest, text = '0123456789abcdefghijklmnopqrstuvwxyz', place, ''
repeat
  text = digits:sub(rest % 36 + 1, rest % 36 + 1)..text
  rest = math.floor(rest / 36)
until rest == 0
local id = 'task_'..createdAt..'_'..text
redis.call('HSET', P..'task:'..id, 'record', record, 'summary', summary, 'instanceId', inst, 'asked', asked, 'place', place,
  'position', depth + 1, 'status', 'queued', 'createdAt', createdAt, 'seq', 0, 'index', 0, 'bytes', bytes, 'key', key)
redis.call('ZADD', P..'tasks', place, id)
redis.call('ZADD', P..'of:'..inst, place, id)
redis.call('ZADD', P..'live:'..inst, place, id)
redis.call('ZADD', P..'joining', now(), id)
redis.call('INCRBY', P..'bytes', bytes)
if key ~= '' then redis.call('SET', P..'key:'..key, id) end
return {'OK', id, inst, depth + 1}
`)

/** The task is a job: its submission may be answered. 0 when it was given up meanwhile. task */
export const CONFIRM = script(`${PRELUDE}
local inst = redis.call('HGET', P..'task:'..ARGV[1], 'instanceId')
if not inst then return 0 end
redis.call('ZREM', P..'joining', ARGV[1])
announce('t', 'work', 'inst', inst)
return 1
`)

/** Gives up a task that did not become a job, and that nobody was told of. task, least age in ms */
export const ABANDON = script(`${PRELUDE}
local since = redis.call('ZSCORE', P..'joining', ARGV[1])
if not since or since + ARGV[2] > now() or redis.call('HGET', P..'task:'..ARGV[1], 'status') ~= 'queued' then return 0 end
forget(ARGV[1])
return 1
`)

/** Starts a task that was fetched. Nothing of it has run when this did not return 'run'; 'joining': its submission is not confirmed yet; 'stale': the instance has another connection; 'unlocked': its lock has ended. task, lock, token, epoch, time */
export const BEGIN = script(`${PRELUDE}
local id, lock, token, epoch, at = unpack(ARGV)
local task = redis.call('HMGET', P..'task:'..id, 'status', 'instanceId', 'owner')
if not task[1] then return 'gone' end
if isOver(task[1]) then return 'over' end
if redis.call('ZSCORE', P..'joining', id) then return 'joining' end
if redis.call('HGET', P..'inst:'..task[2], 'epoch') ~= epoch then return 'stale' end
if redis.call('GET', lock) ~= token then return 'unlocked' end
if task[1] ~= 'queued' then return task[3] == token and 'run' or 'begun' end
redis.call('HSET', P..'task:'..id, 'status', 'running', 'startedAt', at, 'owner', token)
return 'run'
`)

/**
 * Writes events of a running task, and what they change of its record. task, lock, token, 1 at its end, life of the log, most ended tasks, bytes;
 * the number of fields, the fields; the number of reports to drop, their places; then the place and the message of each event
 */
export const RECORD = script(`${PRELUDE}
local id, lock, token, isEnd, logMs, maxRetained, bytes = unpack(ARGV, 1, 7)
local task = redis.call('HMGET', P..'task:'..id, 'status', 'instanceId', 'seq')
if not task[1] then return 'over' end
local isMine = redis.call('GET', lock) == token
-- A connection that was lost sends again what it got no answer to.
if isOver(task[1]) then return isMine and isEnd == '1' and tonumber(task[3]) >= tonumber(ARGV[#ARGV - 1]) and 'ok' or 'over' end
if not isMine then return 'stale' end
local at = 8
local count = tonumber(ARGV[at])
for i = at + 1, at + count, 2 do redis.call('HSET', P..'task:'..id, ARGV[i], ARGV[i + 1]) end
at = at + count + 1
count = tonumber(ARGV[at])
for i = at + 1, at + count do redis.call('XDEL', P..'log:'..id, ARGV[i]..'-0') end
at = at + count + 1
local last = tonumber(task[3])
for i = at, #ARGV, 2 do
  local seq = tonumber(ARGV[i])
  if seq > last then append(id, task[2], ARGV[i], ARGV[i + 1]); last = seq end
end
redis.call('HSET', P..'task:'..id, 'seq', last)
if tonumber(bytes) > 0 then
  redis.call('HINCRBY', P..'task:'..id, 'bytes', bytes)
  redis.call('INCRBY', P..'bytes', bytes)
end
if isEnd == '1' then keepEnd(id, task[2], logMs, maxRetained) end
return 'ok'
`)

/** Ends a task that has not begun. task, life of the log, most ended tasks, message, fields */
export const END_QUEUED = script(`${PRELUDE}
local id, logMs, maxRetained, message = unpack(ARGV, 1, 4)
local task = redis.call('HMGET', P..'task:'..id, 'status', 'instanceId', 'seq')
if task[1] ~= 'queued' then return 0 end
for i = 5, #ARGV, 2 do redis.call('HSET', P..'task:'..id, ARGV[i], ARGV[i + 1]) end
local seq = task[3] + 1
redis.call('HSET', P..'task:'..id, 'seq', seq)
append(id, task[2], seq, message)
keepEnd(id, task[2], logMs, maxRetained)
return 1
`)

/** Asks the node that runs a task to cancel it. task, reason */
export const ASK_CANCEL = script(`${PRELUDE}
local status = redis.call('HGET', P..'task:'..ARGV[1], 'status')
if status ~= 'running' then return 0 end
redis.call('HSET', P..'task:'..ARGV[1], 'cancel', ARGV[2])
announce('t', 'cancel', 'id', ARGV[1], 'm', ARGV[2])
return 1
`)

/** Makes an instance one of a node, unless a later connection of it was. instance, node, epoch of the connection, 1 to take it from another node, time, then its fields. Returns 1, or 0 and the node that has it. */
export const CLAIM = script(`${PRELUDE}
local inst, node, epoch, force, at = unpack(ARGV, 1, 5)
local key = P..'inst:'..inst
local holder, latest = unpack(redis.call('HMGET', key, 'node', 'epoch'))
if latest and tonumber(latest) > tonumber(epoch) then return {0, holder or ''} end
if holder and holder ~= '' and holder ~= node and force ~= '1' and redis.call('EXISTS', P..'node:'..holder) == 1 then return {0, holder} end
redis.call('HSET', key, 'node', node, 'connectedAt', at, 'epoch', epoch)
redis.call('HDEL', key, 'lostAt', 'registeredAt')
redis.call('SREM', P..'waiting', inst)
for i = 6, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
redis.call('ZADD', P..'instances', 'NX', redis.call('INCR', P..'serial'), inst)
announce('t', 'instance', 'inst', inst, 'node', node)
return {1, ''}
`)

/** The tools of an instance. instance, epoch, tools */
export const DESCRIBE = script(`${PRELUDE}
if redis.call('HGET', P..'inst:'..ARGV[1], 'epoch') ~= ARGV[2] then return 0 end
return redis.call('HSET', P..'inst:'..ARGV[1], 'tools', ARGV[3])
`)

/** An instance has lost its connection. instance, node, epoch */
export const LOSE = script(`${PRELUDE}
local key = P..'inst:'..ARGV[1]
local one = redis.call('HMGET', key, 'node', 'epoch')
if one[1] ~= ARGV[2] or one[2] ~= ARGV[3] then return 0 end
setLost(ARGV[1])
return 1
`)

/** Registers a worker, which connects later. instance, digest of its secret, registration, grace, most that are not connected, if fewer are connected */
export const REGISTER = script(`${PRELUDE}
local inst, secret, registration, graceMs, most = unpack(ARGV)
local key = P..'inst:'..inst
local registeredAt = redis.call('HGET', key, 'registeredAt')
if isConnected(inst) then return 'IN_USE' end
if redis.call('ZCARD', P..'live:'..inst) > 0 then return 'AWAITED' end
if registeredAt and registeredAt + graceMs > now() then return 'IN_USE' end
local waiting = redis.call('SCARD', P..'waiting')
if waiting >= math.max(tonumber(most), redis.call('ZCARD', P..'instances') - waiting) then return waiting end
redis.call('HSET', key, 'node', '', 'lostAt', now(), 'registeredAt', now(), 'secret', secret, 'registration', registration, 'kind', 'websocket')
redis.call('SADD', P..'waiting', inst)
redis.call('ZADD', P..'instances', 'NX', redis.call('INCR', P..'serial'), inst)
return 'OK'
`)

/**
 * A node lives, and holds its instances and its locks. node, life, number of instances; instance, epoch and waiting list of each; then task, lock and token
 * of each run. Returns for each instance 'ok', 'work' when tasks wait for it, 'lost', or 'taken' by another node; for each run its request to cancel
 * ('+reason'), 'ok' or 'lost'.
 */
export const RENEW = script(`${PRELUDE}
local node, life, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
redis.call('SET', P..'node:'..node, 1, 'PX', life)
local answers = {}
local at = 4
for i = 1, count do
  local one = redis.call('HMGET', P..'inst:'..ARGV[at], 'node', 'epoch')
  if one[1] == node and one[2] == ARGV[at + 1] then
    answers[#answers + 1] = redis.call('LLEN', ARGV[at + 2]) > 0 and 'work' or 'ok'
  elseif not one[2] or one[2] == ARGV[at + 1] then answers[#answers + 1] = 'lost'
  else answers[#answers + 1] = 'taken' end
  at = at + 3
end
for i = at, #ARGV, 3 do
  if redis.call('GET', ARGV[i + 1]) ~= ARGV[i + 2] then answers[#answers + 1] = 'lost'
  else
    redis.call('PEXPIRE', ARGV[i + 1], life)
    local why = redis.call('HGET', P..'task:'..ARGV[i], 'cancel')
    answers[#answers + 1] = why and '+'..why or 'ok'
  end
end
return answers
`)

/** A node has ended. node */
export const LEAVE = script(`${PRELUDE} return redis.call('DEL', P..'node:'..ARGV[1])`)

/**
 * What nobody looks after. BullMQ's prefix, grace of instances, age of a submission that was given up, age of ended tasks, time after which the cluster is
 * looked at again. Returns for each: 'stalled', instance, job; 'awaited', instance, tasks; 'joining', '', tasks
 */
export const SURVEY = script(`${PRELUDE}
local prefix, graceMs, joinMs, retentionMs, againMs = unpack(ARGV)
if tonumber(againMs) > 0 and not redis.call('SET', P..'surveyed', 1, 'NX', 'PX', againMs) then return {} end
local at = now()
local found = {}
local nodes = {}
local function lives(node)
  if nodes[node] == nil then nodes[node] = redis.call('EXISTS', P..'node:'..node) == 1 end
  return nodes[node]
end
for _, inst in ipairs(redis.call('ZRANGE', P..'instances', 0, -1)) do
  local key = P..'inst:'..inst
  local one = redis.call('HMGET', key, 'node', 'lostAt')
  local queue = queueOf(prefix, inst)
  if one[1] and one[1] ~= '' and not lives(one[1]) then
    setLost(inst)
  elseif one[1] == '' and one[2] and one[2] + graceMs <= at then
    local waiting = redis.call('ZRANGE', P..'live:'..inst, 0, 99)
    if #waiting > 0 then
      found[#found + 1] = 'awaited'; found[#found + 1] = inst; found[#found + 1] = table.concat(waiting, ' ')
    elseif redis.call('LLEN', queue..':active') == 0 then
      for _, state in ipairs({'completed', 'failed'}) do
        for _, job in ipairs(redis.call('ZRANGE', queue..':'..state, 0, -1)) do redis.call('DEL', queue..':'..job) end
      end
      for _, job in ipairs(redis.call('LRANGE', queue..':wait', 0, -1)) do redis.call('DEL', queue..':'..job) end
      for _, part in ipairs({'meta', 'events', 'id', 'marker', 'wait', 'completed', 'failed', 'stalled'}) do
        redis.call('DEL', queue..':'..part)
      end
      redis.call('DEL', key)
      redis.call('ZREM', P..'instances', inst)
      redis.call('SREM', P..'waiting', inst)
      announce('t', 'forgotten', 'inst', inst)
    end
  end
  for _, job in ipairs(redis.call('LRANGE', queue..':active', 0, -1)) do
    if redis.call('EXISTS', queue..':'..job..':lock') == 0 then
      found[#found + 1] = 'stalled'; found[#found + 1] = inst; found[#found + 1] = job
    end
  end
end
local given = redis.call('ZRANGEBYSCORE', P..'joining', '-inf', at - joinMs, 'LIMIT', 0, 100)
if #given > 0 then found[#found + 1] = 'joining'; found[#found + 1] = ''; found[#found + 1] = table.concat(given, ' ') end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P..'ended', '-inf', at - retentionMs, 'LIMIT', 0, 1000)) do forget(id) end
return found
`)

/** Takes the lock of a job that no living connection has. lock, token, life, 1 to take it from an earlier epoch, instance, epoch */
export const SEIZE = script(`${PRELUDE}
local lock, token, life, force, inst, epoch = unpack(ARGV)
if force == '1' then
  if redis.call('HGET', P..'inst:'..inst, 'epoch') ~= epoch or redis.call('GET', lock) == token then return 0 end
  redis.call('SET', lock, token, 'PX', life)
  return 1
end
return redis.call('SET', lock, token, 'NX', 'PX', life) and 1 or 0
`)

/** A job has left an instance's queue by other means than its end: there may be work. instance */
export const ANNOUNCE_WORK = script(`${PRELUDE} announce('t', 'work', 'inst', ARGV[1]); return 1`)
