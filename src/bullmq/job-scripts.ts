/** The scripts of jobs and their runs. */
import { bullmqLayout } from './bullmq-layout.js'
import { script } from './script.js'

/**
 * What a host has said to a run: the reason of a cancellation, why to conclude, answers as number and text, and the messages after one.
 * The messages up to that one have arrived: they are removed.
 */
const news = `
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
`

/**
 * Publishes to the host of a job that it has ended; with its output when that is small enough and its run has said nothing before: then there is nothing left
 * to look for. `host` is the channel of the host that sent the job.
 */
export const ANNOUNCE = script(
  ['agent'],
  ['queue', 'id', 'host', 'mostBytes'],
  `${bullmqLayout}
local state, output = bull.read(queue, id)
local said = redis.call('HMGET', agent, 'host', 'bytes')
local message = id
if state == 'completed' and not said[2] and #output <= tonumber(mostBytes) then message = id .. '\\n' .. output end
redis.call('PUBLISH', said[1] or host, message)
return 1
`,
)

/**
 * Begins a run on a worker: renews the lock of its job, and reads what its host has said by now.
 * @returns what `TAKE` does, or nothing when the job is another's.
 */
export const BEGIN_RUN = script(
  ['agent', 'down'],
  ['queue', 'id', 'token', 'lockMs'],
  `${bullmqLayout}${news}
if not bull.extend(queue, id, token, lockMs) and not bull.seize(queue, id, token, lockMs) then return false end
return news(agent, down, '0-0')
`,
)

/**
 * Stores the cancellation of a run, and then tells the workers of it. No worker begins a run whose cancellation is stored, also when its job is added later.
 * @returns the state of the job; one that has ended is not cancelled.
 */
export const CANCEL = script(
  ['agent'],
  ['queue', 'id', 'reason', 'keptSeconds', 'workers'],
  `${bullmqLayout}
local state = bull.read(queue, id)
if state == 'completed' or state == 'failed' or state == 'interrupted' then return state end
redis.call('HSET', agent, 'cancel', reason)
redis.call('EXPIRE', agent, keptSeconds)
redis.call('PUBLISH', workers, id)
return state
`,
)

/**
 * Finds the jobs of a queue whose workers have died: they are active, and their locks have expired.
 * @returns their ids.
 */
export const FIND_SILENT = script(
  [],
  ['queue'],
  `${bullmqLayout}
return bull.silent(queue)
`,
)

/**
 * Takes the lock of a job whose worker has died, and notes why its run has failed. The job fails next, under this lock (`Job.moveToFailed`).
 * @returns 1, or 0 when there is nothing to give up.
 */
export const GIVE_UP = script(
  ['agent'],
  ['queue', 'id', 'token', 'lockMs', 'failure', 'keptSeconds'],
  `${bullmqLayout}
if not bull.seize(queue, id, token, lockMs) then return 0 end
redis.call('HSET', agent, 'failure', failure)
redis.call('EXPIRE', agent, keptSeconds)
return 1
`,
)

/**
 * Takes the lock of a job back if it has expired.
 * @returns 1, or 0 when the job is not the token's any more.
 */
export const KEEP_LOCK = script(
  [],
  ['queue', 'id', 'token', 'lockMs'],
  `${bullmqLayout}
return bull.keep(queue, id, token, lockMs) and 1 or 0
`,
)

/**
 * Reads what is new of a run for its host. `after` is the last entry of `up` that the host has; `host` is its channel (empty: the one that the job names),
 * `seen` the sums that it has applied since its last look (empty: none).
 * @returns the state of the job; its output or why it failed; the details of a failure; entries of `up`; open questions as number and text; the sums of the
 * run, and those that a host has applied.
 */
export const LOOK = script(
  ['agent', 'up'],
  ['queue', 'id', 'after', 'host', 'seen', 'keptSeconds', 'mostEntries'],
  `${bullmqLayout}
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
`,
)

/**
 * Reads what a host has said to a run. `after` is the last message that the run has.
 * @returns the reason of a cancellation, why to conclude, answers as number and text, and messages.
 */
export const TAKE = script(
  ['agent', 'down'],
  ['after'],
  `${news}
return news(agent, down, after)
`,
)

/**
 * Says something to a run. `what` is `message`, `answer` or `wrapUp`; `number` is that of a question, or of a message and its sender. What is sent again,
 * since its answer was lost, is known by its number and changes nothing.
 * @returns 1 when it is stored, 0 when nobody waits for it, and -1 when there is no room.
 */
export const TELL = script(
  ['agent', 'down'],
  ['queue', 'id', 'keptSeconds', 'workers', 'what', 'number', 'text', 'mostEntries', 'mostBytes'],
  `${bullmqLayout}
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
`,
)

/**
 * Writes what a run says, in its order, while its worker has the lock of its job. `write` is the number of this write: one that is sent again, since its
 * answer was lost, changes nothing. `host` is the channel of the host that sent the job; an entry of `up` costs `entryBytes` besides its text. What follows
 * are the items: what each is (`output`, `progress`, `set`, `delete`), its name and its text.
 * @returns 1, or 0 when the job is not the token's any more.
 */
export const WRITE = script(
  ['agent', 'up'],
  ['queue', 'id', 'token', 'lockMs', 'host', 'keptSeconds', 'mostBytes', 'entryBytes', 'write'],
  `${bullmqLayout}
local items = 10
if not bull.keep(queue, id, token, lockMs) then return 0 end
if redis.call('HGET', agent, 'written') == write then return 1 end
redis.call('HSET', agent, 'written', write)
local bytes = tonumber(redis.call('HGET', agent, 'bytes') or '0')
for i = items, #ARGV, 3 do
  local what, name, text = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if what == 'set' then
    redis.call('HSET', agent, name, text)
  elseif what == 'delete' then
    redis.call('HDEL', agent, name)
  else
    redis.call('XADD', up, '*', what, text)
    bytes = bytes + #text + entryBytes
  end
end
while bytes > tonumber(mostBytes) do
  local oldest = redis.call('XRANGE', up, '-', '+', 'COUNT', 16)
  if #oldest == 0 then break end
  for i = 1, #oldest do
    if bytes > tonumber(mostBytes) then
      redis.call('XDEL', up, oldest[i][1])
      bytes = bytes - #oldest[i][2][2] - entryBytes
    end
  end
end
redis.call('HSET', agent, 'bytes', bytes)
redis.call('EXPIRE', agent, keptSeconds)
redis.call('EXPIRE', up, keptSeconds)
redis.call('PUBLISH', redis.call('HGET', agent, 'host') or host, id)
return 1
`,
)
