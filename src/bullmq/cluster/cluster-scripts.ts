/** The Lua scripts of a cluster. */
import { endStatusSchema } from '../../protocol/command-tasks.js'
import { bullmqLayout } from '../bullmq-layout.js'
import { script } from '../script.js'

/** Code that the scripts share. They read the time from Redis, because the clocks of the nodes may differ. */
const cluster = `
local function now() local t = redis.call('TIME'); return t[1] * 1000 + math.floor(t[2] / 1000) end
-- Encodes the instance id as cluster-keys.ts does.
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
local function isOver(status) return ${endStatusSchema.options.map((status) => `status == '${status}'`).join(' or ')} end
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
`

/**
 * Drops a submission that was accepted, but not confirmed. Its client has received no task id.
 * @returns 1; 0 when the submission is confirmed, running, or younger than `leastAgeMs`
 */
export const ABANDON = script(
  ['own'],
  ['task', 'leastAgeMs'],
  `${cluster}
local since = redis.call('ZSCORE', own..'joining', task)
if not since or since + leastAgeMs > now() or redis.call('HGET', own..'task:'..task, 'status') ~= 'queued' then return 0 end
forget(task)
return 1
`,
)

/**
 * Accepts a task if there is room. The caller then adds the job and confirms the task (`CONFIRM`). `asked` is the instance that the client named;
 * empty for any instance. `key` is the idempotency key; empty for none.
 * @returns a code, the id of the task, its instance and its position. `OK`: a new task. `KNOWN`: the key belongs to this earlier task. `JOINING`: the
 * same, but the earlier task is not confirmed yet. `REUSED`: the key belongs to a different task. Other codes say why the task was refused.
 */
export const ACCEPT = script(
  ['own'],
  ['asked', 'record', 'summary', 'createdAt', 'maxQueue', 'bytes', 'maxBytes', 'key'],
  `${cluster}
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
`,
)

/** Publishes that a job has left the queue of an instance without running to its end, so that the instance fetches the next job. */
export const ANNOUNCE_WORK = script(
  ['own'],
  ['inst'],
  `${cluster}
announce('t', 'work', 'inst', inst)
return 1
`,
)

/**
 * Asks the node that runs a task to cancel it.
 * @returns 1, or 0 when the task is not running
 */
export const ASK_CANCEL = script(
  ['own'],
  ['task', 'reason'],
  `${cluster}
local status = redis.call('HGET', own..'task:'..task, 'status')
if status ~= 'running' then return 0 end
redis.call('HSET', own..'task:'..task, 'cancel', reason)
announce('t', 'cancel', 'id', task, 'm', reason)
return 1
`,
)

/**
 * Starts a fetched task. With any result except `run`, no command of the task has been started by this call.
 * @returns `run`: start the commands. `joining`: the submission is not confirmed yet. `stale`: the instance has a newer connection. `unlocked`: the
 * token does not hold the lock of the job. `begun`: another token has started the task. `over`: the task has ended. `gone`: the task does not exist.
 */
export const BEGIN = script(
  ['own'],
  ['id', 'queue', 'token', 'epoch', 'at'],
  `${bullmqLayout}${cluster}
local task = redis.call('HMGET', own..'task:'..id, 'status', 'instanceId', 'owner')
if not task[1] then return 'gone' end
if isOver(task[1]) then return 'over' end
if redis.call('ZSCORE', own..'joining', id) then return 'joining' end
if redis.call('HGET', own..'inst:'..task[2], 'epoch') ~= epoch then return 'stale' end
if bull.holder(queue, id) ~= token then return 'unlocked' end
if task[1] ~= 'queued' then return task[3] == token and 'run' or 'begun' end
redis.call('HSET', own..'task:'..id, 'status', 'running', 'startedAt', at, 'owner', token)
return 'run'
`,
)

/**
 * Makes a node the owner of an instance, unless the instance has a newer connection. With `force` 1, it takes the instance from another live node.
 * Further arguments are fields of the instance and their values.
 * @returns `{1, ''}`; `{0, node}` with the node that owns the instance, or owned it last
 */
export const CLAIM = script(
  ['own'],
  ['inst', 'node', 'epoch', 'force', 'at'],
  `${cluster}
local fields = 6
local key = own..'inst:'..inst
local holder, latest = unpack(redis.call('HMGET', key, 'node', 'epoch'))
if latest and tonumber(latest) > tonumber(epoch) then return {0, holder or ''} end
if holder and holder ~= '' and holder ~= node and force ~= '1' and redis.call('EXISTS', own..'node:'..holder) == 1 then return {0, holder} end
redis.call('HSET', key, 'node', node, 'connectedAt', at, 'epoch', epoch)
redis.call('HDEL', key, 'lostAt', 'registeredAt')
redis.call('SREM', own..'waiting', inst)
for i = fields, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
redis.call('ZADD', own..'instances', 'NX', redis.call('INCR', own..'serial'), inst)
announce('t', 'instance', 'inst', inst, 'node', node)
return {1, ''}
`,
)

/**
 * Confirms a submission: its job exists, so the task may run, and the client may receive its id.
 * @returns 1, or 0 when the submission was dropped meanwhile
 */
export const CONFIRM = script(
  ['own'],
  ['task'],
  `${cluster}
local inst = redis.call('HGET', own..'task:'..task, 'instanceId')
if not inst then return 0 end
redis.call('ZREM', own..'joining', task)
announce('t', 'work', 'inst', inst)
return 1
`,
)

/** Stores the tools of an instance, unless the instance has a newer connection. */
export const DESCRIBE = script(
  ['own'],
  ['inst', 'epoch', 'tools'],
  `${cluster}
if redis.call('HGET', own..'inst:'..inst, 'epoch') ~= epoch then return 0 end
return redis.call('HSET', own..'inst:'..inst, 'tools', tools)
`,
)

/**
 * Ends a task that has not started. Further arguments are fields of the task and their values.
 * @returns 1, or 0 when the task has started or ended
 */
export const END_QUEUED = script(
  ['own'],
  ['id', 'logMs', 'maxRetained', 'message'],
  `${cluster}
local fields = 5
local task = redis.call('HMGET', own..'task:'..id, 'status', 'instanceId', 'seq')
if task[1] ~= 'queued' then return 0 end
for i = fields, #ARGV, 2 do redis.call('HSET', own..'task:'..id, ARGV[i], ARGV[i + 1]) end
local seq = task[3] + 1
redis.call('HSET', own..'task:'..id, 'seq', seq)
append(id, task[2], seq, message)
keepEnd(id, task[2], logMs, maxRetained)
return 1
`,
)

/** Removes the heartbeat of a node that closes. */
export const LEAVE = script(
  ['own'],
  ['node'],
  `${cluster}
return redis.call('DEL', own..'node:'..node)
`,
)

/**
 * Records that an instance has lost its connection to a node.
 * @returns 1, or 0 when the instance has another connection
 */
export const LOSE = script(
  ['own'],
  ['inst', 'node', 'epoch'],
  `${cluster}
local key = own..'inst:'..inst
local one = redis.call('HMGET', key, 'node', 'epoch')
if one[1] ~= node or one[2] ~= epoch then return 0 end
setLost(inst)
return 1
`,
)

/**
 * Appends events to the log of a running task, and changes its record. These arguments follow the named ones:
 * - fields of the record, each with its value (`fieldParts` arguments)
 * - the sequence numbers of progress reports to delete (`drops` arguments)
 * - new events, each with its sequence number and its message
 * @returns `ok`; `over` when the task has ended; `stale` when the token does not hold the lock of the job
 */
export const RECORD = script(
  ['own'],
  ['id', 'queue', 'token', 'isEnd', 'logMs', 'maxRetained', 'bytes', 'fieldParts', 'drops'],
  `${bullmqLayout}${cluster}
local fields = 10
local dropped = fields + fieldParts
local events = dropped + drops
local task = redis.call('HMGET', own..'task:'..id, 'status', 'instanceId', 'seq')
if not task[1] then return 'over' end
local isMine = bull.holder(queue, id) == token
-- A node repeats a write when it received no answer. A repeated end counts as written.
if isOver(task[1]) then return isMine and isEnd == '1' and tonumber(task[3]) >= tonumber(ARGV[#ARGV - 1]) and 'ok' or 'over' end
if not isMine then return 'stale' end
for i = fields, dropped - 1, 2 do redis.call('HSET', own..'task:'..id, ARGV[i], ARGV[i + 1]) end
for i = dropped, events - 1 do redis.call('XDEL', own..'log:'..id, ARGV[i]..'-0') end
local last = tonumber(task[3])
for i = events, #ARGV, 2 do
  local seq = tonumber(ARGV[i])
  if seq > last then append(id, task[2], ARGV[i], ARGV[i + 1]); last = seq end
end
redis.call('HSET', own..'task:'..id, 'seq', last)
if tonumber(bytes) > 0 then
  redis.call('HINCRBY', own..'task:'..id, 'bytes', bytes)
  redis.call('INCRBY', own..'bytes', bytes)
end
if isEnd == '1' then keepEnd(id, task[2], logMs, maxRetained) end
return 'ok'
`,
)

/**
 * Registers a worker that will connect later. `secret` is the digest of the worker's secret. `most` limits the number of registered workers that are
 * not connected; if more instances than that are connected, their number is the limit.
 * @returns `OK`; `IN_USE` when a worker with this id is connected or was registered just before; `AWAITED` when tasks wait for the worker that used
 * this id; the number of unconnected workers when the limit is reached
 */
export const REGISTER = script(
  ['own'],
  ['inst', 'secret', 'registration', 'graceMs', 'most'],
  `${cluster}
local key = own..'inst:'..inst
local registeredAt = redis.call('HGET', key, 'registeredAt')
if isConnected(inst) then return 'IN_USE' end
if redis.call('ZCARD', own..'live:'..inst) > 0 then return 'AWAITED' end
if registeredAt and registeredAt + graceMs > now() then return 'IN_USE' end
local waiting = redis.call('SCARD', own..'waiting')
if waiting >= math.max(tonumber(most), redis.call('ZCARD', own..'instances') - waiting) then return waiting end
redis.call('HSET', key, 'node', '', 'lostAt', now(), 'registeredAt', now(), 'secret', secret, 'registration', registration, 'kind', 'websocket')
redis.call('SADD', own..'waiting', inst)
redis.call('ZADD', own..'instances', 'NX', redis.call('INCR', own..'serial'), inst)
return 'OK'
`,
)

/**
 * Renews the heartbeat of a node, its ownership of instances, and the locks of its running jobs. Further arguments are id, epoch and queue of each
 * instance (`instances` triples), and then task, queue and token of each run.
 * @returns one answer for each instance: `ok`, `work` (tasks are waiting), `lost` (no owner), or `taken` (another node has a newer connection); and
 * one answer for each run: `ok`, `lost` (the lock is gone), or `+` followed by the reason to cancel the run
 */
export const RENEW = script(
  ['own'],
  ['node', 'life', 'instances'],
  `${bullmqLayout}${cluster}
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
`,
)

/**
 * Takes the lock of a job from an earlier connection of its instance.
 * @returns 1; 0 when the instance has a newer connection, the token already holds the lock, or the job has ended
 */
export const SEIZE_FROM_EARLIER = script(
  ['own'],
  ['queue', 'id', 'token', 'lifeMs', 'inst', 'epoch'],
  `${bullmqLayout}${cluster}
if redis.call('HGET', own..'inst:'..inst, 'epoch') ~= epoch or bull.holder(queue, id) == token then return 0 end
return bull.replace(queue, id, token, lifeMs) and 1 or 0
`,
)

/**
 * Takes the lock of a job whose node is dead.
 * @returns 1, or 0 when the job is locked or has ended
 */
export const SEIZE = script(
  [],
  ['queue', 'id', 'token', 'lifeMs'],
  `${bullmqLayout}
return bull.seize(queue, id, token, lifeMs) and 1 or 0
`,
)

/**
 * Finds work that no live node takes care of. Also deletes instances that stayed disconnected, and tasks that ended long ago. If another survey ran
 * within `againMs`, returns nothing; with 0, always surveys. `prefix` is the prefix of the queues.
 * @returns three values for each finding: `stalled`, the instance and the job; `awaited`, the instance and its tasks; or `joining`, an empty text and
 * the tasks
 */
export const SURVEY = script(
  ['own'],
  ['prefix', 'graceMs', 'joinMs', 'retentionMs', 'againMs'],
  `${bullmqLayout}${cluster}
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
`,
)
