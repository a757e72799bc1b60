/** The Lua scripts for jobs and their runs. */
import { bullmqLayout } from './bullmq-layout.js'
import { script } from './script.js'

/**
 * Returns what the host has sent to a run: the reason of a cancellation, the reason to wrap up early, answers (number, text, number, text, …), and
 * messages. The run has received all messages up to `after`, so the function deletes them.
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
 * Publishes to the host that a job has ended. The message contains the output if it is small and the run has written no other updates. The host then
 * does not have to read Redis again. `host` is the channel of the host that sent the job.
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
 * Starts a run on a worker: renews the lock of its job, and reads what the host has sent.
 * @returns the same as `TAKE`; null when this worker does not hold the lock and cannot take it again
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
 * Stores the cancellation of a run and notifies the workers. No worker starts a run whose cancellation is stored, even if its job is added later.
 * @returns the state of the job; a job that has ended is not cancelled
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
 * Finds the active jobs whose locks have expired. Their workers are dead.
 * @returns the ids of these jobs
 */
export const FIND_SILENT = script(
  [],
  ['queue'],
  `${bullmqLayout}
return bull.silent(queue)
`,
)

/**
 * Takes the lock of a job whose worker is dead, and stores why its run failed, if the worker has not stored that. The caller then fails the job under
 * this lock (`Job.moveToFailed`).
 * @returns 1, or 0 when the job is locked or has ended
 */
export const GIVE_UP = script(
  ['agent'],
  ['queue', 'id', 'token', 'lockMs', 'failure', 'keptSeconds'],
  `${bullmqLayout}
if not bull.seize(queue, id, token, lockMs) then return 0 end
redis.call('HSETNX', agent, 'failure', failure)
redis.call('EXPIRE', agent, keptSeconds)
return 1
`,
)

/**
 * Takes the lock of a job again if it has expired.
 * @returns 1; 0 when another worker holds the lock, or the job has ended or does not exist
 */
export const KEEP_LOCK = script(
  [],
  ['queue', 'id', 'token', 'lockMs'],
  `${bullmqLayout}
return bull.keep(queue, id, token, lockMs) and 1 or 0
`,
)

/**
 * Reads the state and the updates of a run for its host.
 *
 * `after` is the last entry of the stream `up` that the host has read. `host` is the host's channel; empty for the host that sent the job. `seen` is the
 * total of spent amounts that the host has counted, as JSON; empty when the total has not changed.
 * @returns only the state of the job if the job does not exist. Otherwise seven values:
 * - the state of the job
 * - its output or its error
 * - details of the error, as JSON
 * - new entries of `up`
 * - open questions: number, text, number, text, …
 * - the spent amounts of the run
 * - the last stored `seen`
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
 * Reads what the host has sent to a run. `after` is the last message that the run has received.
 * @returns the reason of a cancellation, the reason to wrap up early, answers (number, text, number, text, …), and messages
 */
export const TAKE = script(
  ['agent', 'down'],
  ['after'],
  `${news}
return news(agent, down, after)
`,
)

/**
 * Sends a message, an answer or a request to wrap up early to a run. `what` is `message`, `answer` or `wrapUp`. For an answer, `number` is the number
 * of the question. For a message it identifies the sender and the message. A host repeats a request when it received no reply; the repetition changes
 * nothing.
 * @returns 1 when the text is stored; 0 when the question is not open or the job has ended; -1 when too many messages are waiting
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
 * Writes the updates of a run in order, while its worker holds the lock of the job.
 *
 * `write` identifies this write. A worker repeats a write when it received no reply; the repetition changes nothing. `host` is the channel of the host
 * that sent the job. `entryBytes` is the size that each entry of `up` counts in addition to its text. The items follow as further arguments, three
 * for each: kind (`output`, the name of a reported field, `set` or `delete`), name and text.
 * @returns 1; 0 when another worker holds the lock, or the job has ended or does not exist
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
