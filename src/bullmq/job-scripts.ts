/** The scripts of jobs and their runs. */
import { bullmqLayout } from './bullmq-layout.js'
import { script } from './script.js'

/**
 * Reads the host's messages to a run: the reason of a cancellation, why to conclude, answers as number and text, and the messages after a given one.
 * Earlier messages have arrived, so they are removed.
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
 * Publishes the end of a job to its host, with the output when it is small and the run has sent no other news, so that the host need not read again.
 * `host` is the channel of the host that sent the job.
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
 * Starts a run on a worker: renews the lock of its job, and reads the messages of its host.
 * @returns what `TAKE` returns, or an empty reply when another worker has the job.
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
 * Stores the cancellation of a run, and then notifies the workers. No worker starts a run whose cancellation is stored, also when its job is added
 * later.
 * @returns the state of the job. A job that has ended is not cancelled.
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
 * Finds the jobs of a queue whose workers are dead: active jobs whose locks have expired.
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
 * Takes the lock of a job whose worker is dead, and stores why its run failed. The caller then fails the job under this lock (`Job.moveToFailed`).
 * @returns 1, or 0 when the job has a lock or has ended.
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
 * Takes back the lock of a job if it has expired.
 * @returns 1, or 0 when the token no longer owns the job.
 */
export const KEEP_LOCK = script(
  [],
  ['queue', 'id', 'token', 'lockMs'],
  `${bullmqLayout}
return bull.keep(queue, id, token, lockMs) and 1 or 0
`,
)

/**
 * Reads the news of a run for its host. `after` is the last entry of `up` that the host has; `host` is its channel (empty: the one in the job), `seen`
 * the sums that it has applied since its last read (empty: none).
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
 * Reads the messages of a host to a run. `after` is the last message that the run has.
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
 * Sends a message, an answer or a request to conclude to a run. `what` is `message`, `answer` or `wrapUp`; `number` is that of a question, or of a
 * message and its sender. A repeated request (because its reply was lost) is recognized by its number and changes nothing.
 * @returns 1 when it is stored, 0 when the question is not open, and -1 when there is no room.
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
 * Writes the news of a run in order, while its worker holds the lock of its job. `write` is the number of this write; a repeated write (because its
 * reply was lost) changes nothing. `host` is the channel of the host that sent the job; an entry of `up` costs `entryBytes` besides its text. Further
 * arguments are the items: their kind (`output`, `progress`, `set`, `delete`), name and text.
 * @returns 1, or 0 when the token no longer owns the job.
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
