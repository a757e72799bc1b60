/**
 * What Redis does as one step with a job and what belongs to it.
 *
 * 1. A job that has ended is not changed: `finishedOn` is set once, by BullMQ under its lock, or here where there is no lock.
 * 2. What a run says counts while its lock is its own, or has ended and nobody has given the job up (`KEEP`): what a worker writes after that is dropped.
 * 3. A cancellation is stored before anybody is told (`CANCEL`), and a job that nobody has started ends with it.
 * 4. A job that does not exist when it is cancelled is made, as one that has failed: its add, when it comes, is a duplicate.
 * 5. What is sent again, since its answer was lost, is known by its number and changes nothing (`WRITE`, `TELL`).
 * 6. A channel only hurries: who misses what is published finds it when it looks. The output that `ANNOUNCE` tells is that of a job that has ended.
 */
import { script } from './script.js'
import { ENTRY_BYTES } from './outgoing.js'

/** Fails a job that no worker has, or whose worker has died. The `queueKeys` follow the first five keys. */
const FAIL = `
local function fail(id, reason)
  local now = redis.call('TIME')
  local at = now[1] * 1000 + math.floor(now[2] / 1000)
  redis.call('LREM', KEYS[6], 0, id)
  redis.call('LREM', KEYS[7], 0, id)
  redis.call('LREM', KEYS[8], 0, id)
  redis.call('ZREM', KEYS[9], id)
  redis.call('ZREM', KEYS[10], id)
  redis.call('SREM', KEYS[11], id)
  redis.call('DEL', KEYS[2])
  redis.call('HDEL', KEYS[1], 'defa')
  redis.call('HSET', KEYS[1], 'failedReason', reason, 'finishedOn', at)
  redis.call('ZADD', KEYS[12], at, id)
  redis.call('XADD', KEYS[13], 'MAXLEN', '~', 10000, '*', 'event', 'failed', 'jobId', id, 'failedReason', reason, 'prev', 'active')
end
local function giveUp(id, reason)
  redis.call('HINCRBY', KEYS[1], 'stc', 1)
  fail(id, reason)
end
`

/** Whether a job is still that of the worker with this token. A lock that ended while Redis was away is taken back. */
const KEEP = `
local function keep(job, lock, token, ms)
  local holder = redis.call('GET', lock)
  if holder then return holder == token end
  local state = redis.call('HMGET', job, 'processedOn', 'finishedOn', 'defa')
  if not state[1] or state[2] or state[3] then return false end
  redis.call('SET', lock, token, 'PX', ms)
  return true
end
`

/** Keeps the lock of a job. Keys: job, lock. Arguments: its token, how long it lasts in ms. @returns 1, or 0 when the job is not its own */
export const KEEP_LOCK = script(`${KEEP}
return keep(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) and 1 or 0
`)

/**
 * What is new of a job for its host; a job whose worker has died ends here.
 * Keys: job, lock, agent, up, down, and those of the queue. Arguments: id, the last entry of `up` that the host has, its channel (empty: that
 * of the job), the sums that it has applied since its last look (empty: none), seconds to keep, the reason of a job whose worker has died, the most entries,
 * 1 when a job without a lock is given up.
 * @returns the state; how it ended; details of a failure; entries of `up`; open questions; the sums of the run, and those that a host has applied
 */
export const LOOK = script(`${FAIL}
local job = redis.call('HMGET', KEYS[1], 'data', 'finishedOn', 'returnvalue', 'failedReason', 'processedOn', 'defa', 'stc')
if not job[1] then return { 'missing' } end
local agent = KEYS[3]
if ARGV[3] ~= '' then redis.call('HSET', agent, 'host', ARGV[3]) end
if ARGV[4] ~= '' then redis.call('HSET', agent, 'seen', ARGV[4]) end
redis.call('EXPIRE', agent, ARGV[5])
local state = 'waiting'
local finished = job[2]
local value = job[3] or ''
local reason = job[4] or ''
local stalled = tonumber(job[7] or '0')
if not finished then
  if job[6] or (ARGV[8] == '1' and job[5] and redis.call('EXISTS', KEYS[2]) == 0) then
    reason = ARGV[6]
    giveUp(ARGV[1], reason)
    stalled = stalled + 1
    finished = true
  elseif job[5] then
    state = 'active'
  end
end
if finished then
  if job[3] then state = 'completed' elseif stalled > 0 then state = 'interrupted' else state = 'failed' end
end
local entries = redis.call('XRANGE', KEYS[4], '(' .. ARGV[2], '+', 'COUNT', ARGV[7])
local questions = {}
local fields = redis.call('HGETALL', agent)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'q:' then
    questions[#questions + 1] = string.sub(fields[i], 3)
    questions[#questions + 1] = fields[i + 1]
  end
end
local more = redis.call('HMGET', agent, 'failure', 'spent', 'seen')
return { state, state == 'completed' and value or reason, more[1] or '', entries, questions, more[2] or '', more[3] or '' }
`)

/** Gives up a job whose worker has died. Keys as for `LOOK`. Arguments: id, the reason. */
export const GIVE_UP = script(`${FAIL}
local job = redis.call('HMGET', KEYS[1], 'processedOn', 'finishedOn')
if not job[1] or job[2] or redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
giveUp(ARGV[1], ARGV[2])
return 1
`)

/**
 * Cancels a job. Keys as for `LOOK`. Arguments: id, the reason, seconds to keep, the channel of the workers, the name of the job, its options.
 * @returns `active`: its worker is told, if it lives. `ended`: it has ended, maybe by this. `missing`: its add will do nothing
 */
export const CANCEL = script(`${FAIL}
local job = redis.call('HMGET', KEYS[1], 'data', 'finishedOn', 'processedOn')
if not job[1] then
  local now = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'name', ARGV[5], 'data', '{}', 'opts', ARGV[6], 'timestamp', now[1] * 1000, 'delay', 0, 'priority', 0)
  fail(ARGV[1], ARGV[2])
  return 'missing'
end
if job[2] then return 'ended' end
if job[3] then
  redis.call('HSET', KEYS[3], 'cancel', ARGV[2])
  redis.call('EXPIRE', KEYS[3], ARGV[3])
  redis.call('PUBLISH', ARGV[4], ARGV[1])
  return 'active'
end
fail(ARGV[1], ARGV[2])
return 'ended'
`)

/**
 * Says something to a run. Keys: job, agent, down. Arguments: id, seconds to keep, the channel of the workers, what (`message`, `answer`, `wrapUp`), the
 * number of a question, or of a message and its sender, the text, the most entries and the most bytes that wait for the run.
 * @returns 1 when it is stored, 0 when nobody waits for it, -1 when there is no room
 */
export const TELL = script(`
if redis.call('HEXISTS', KEYS[1], 'finishedOn') == 1 then return 0 end
if ARGV[4] == 'answer' then
  if redis.call('HDEL', KEYS[2], 'q:' .. ARGV[5]) == 0 then return 0 end
  redis.call('HSET', KEYS[2], 'a:' .. ARGV[5], ARGV[6])
elseif ARGV[4] == 'wrapUp' then
  redis.call('HSET', KEYS[2], 'wrapUp', ARGV[6])
elseif redis.call('HGET', KEYS[2], 'told') ~= ARGV[5] then
  local bytes = #ARGV[6]
  local waiting = redis.call('XRANGE', KEYS[3], '-', '+')
  for i = 1, #waiting do bytes = bytes + #waiting[i][2][2] end
  if #waiting >= tonumber(ARGV[7]) or bytes > tonumber(ARGV[8]) then return -1 end
  redis.call('XADD', KEYS[3], '*', 'm', ARGV[6])
  redis.call('HSET', KEYS[2], 'told', ARGV[5])
  redis.call('EXPIRE', KEYS[3], ARGV[2])
end
redis.call('EXPIRE', KEYS[2], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1
`)

/**
 * What a run says, in its order. Keys: lock, agent, up, job. Arguments: id, the token of the lock, the channel of the host that sent the job, seconds to
 * keep, the most bytes of `up`, how long the lock lasts in ms, the number of this write, and for each item what it is (`output`, `progress`, `set`, `delete`), its name and its text.
 * @returns 1, or 0 when the job is not its own
 */
export const WRITE = script(`${KEEP}
if not keep(KEYS[4], KEYS[1], ARGV[2], ARGV[6]) then return 0 end
if redis.call('HGET', KEYS[2], 'written') == ARGV[7] then return 1 end
redis.call('HSET', KEYS[2], 'written', ARGV[7])
local most = tonumber(ARGV[5])
local bytes = tonumber(redis.call('HGET', KEYS[2], 'bytes') or '0')
for i = 8, #ARGV, 3 do
  local what, name, text = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if what == 'set' then
    redis.call('HSET', KEYS[2], name, text)
  elseif what == 'delete' then
    redis.call('HDEL', KEYS[2], name)
  else
    redis.call('XADD', KEYS[3], '*', what, text)
    bytes = bytes + #text + ${ENTRY_BYTES}
  end
end
while bytes > most do
  local oldest = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', 16)
  if #oldest == 0 then break end
  for i = 1, #oldest do
    if bytes > most then
      redis.call('XDEL', KEYS[3], oldest[i][1])
      bytes = bytes - #oldest[i][2][2] - ${ENTRY_BYTES}
    end
  end
end
redis.call('HSET', KEYS[2], 'bytes', bytes)
redis.call('EXPIRE', KEYS[2], ARGV[4])
redis.call('EXPIRE', KEYS[3], ARGV[4])
redis.call('PUBLISH', redis.call('HGET', KEYS[2], 'host') or ARGV[3], ARGV[1])
return 1
`)

/**
 * What is new for a run. Keys: agent, down. Argument: the last message that it has.
 * @returns the reason of a cancellation, why to conclude, answers as number and text, messages
 */
export const TAKE = script(`
local fields = redis.call('HGETALL', KEYS[1])
local cancel, wrapUp, answers = false, false, {}
for i = 1, #fields, 2 do
  if fields[i] == 'cancel' then cancel = fields[i + 1] end
  if fields[i] == 'wrapUp' then wrapUp = fields[i + 1] end
  if string.sub(fields[i], 1, 2) == 'a:' then
    answers[#answers + 1] = string.sub(fields[i], 3)
    answers[#answers + 1] = fields[i + 1]
  end
end
local taken = redis.call('XRANGE', KEYS[2], '-', ARGV[1])
for i = 1, #taken do redis.call('XDEL', KEYS[2], taken[i][1]) end
return { cancel, wrapUp, answers, redis.call('XRANGE', KEYS[2], '-', '+') }
`)

/**
 * Tells the host of a job that it has ended. Keys: job, agent. Arguments: id, the channel of the host that sent it, the most bytes of an output that is told.
 *
 * With the output of a run that has said nothing before, there is nothing left to look for.
 */
export const ANNOUNCE = script(`
local agent = redis.call('HMGET', KEYS[2], 'host', 'bytes')
local job = redis.call('HMGET', KEYS[1], 'finishedOn', 'returnvalue')
local message = ARGV[1]
if job[1] and job[2] and not agent[2] and #job[2] <= tonumber(ARGV[3]) then message = message .. '\\n' .. job[2] end
redis.call('PUBLISH', agent[1] or ARGV[2], message)
return 1
`)
