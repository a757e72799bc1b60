/**
 * The keys and fields of BullMQ that the Lua scripts of this package read directly. All other code uses BullMQ's API.
 *
 * This list describes BullMQ 6.7.0. `npm run test:bullmq` compares it with the oldest and the newest version that package.json allows
 * (test/cluster/bullmq-layout.test.ts).
 *
 * key                     type              used for
 * <queue>                                   `<prefix>:<name of the queue>`
 * <queue>:wait            list              its length, in `hasWaiting`
 * <queue>:active          list              its jobs, in `silent` and `isIdle`
 * <queue>:<id>            hash of a job     its fields, in `read`
 * <queue>:<id>:lock       string            the token of the worker that runs the job; it expires when that worker does not renew it
 *
 * field of a job          set
 * name                    when the job is added
 * processedOn             when a worker fetches the job
 * finishedOn              when the job completes or fails
 * returnvalue             when the job completes: JSON
 * failedReason            when the job fails: a text
 * stc                     counts how often BullMQ's own check has found the job without a lock
 *
 * `obliterate` also deletes the other keys that BullMQ creates for a queue and its jobs. The function lists them.
 */
export const bullmqLayout = `
local bull = {}

-- Returns the state of a job, and its output as JSON or its error.
-- States: missing, waiting, active, silent (a worker fetched the job and its lock has expired), completed, failed, interrupted (BullMQ's own check failed it).
function bull.read(queue, id)
  local job = redis.call('HMGET', queue .. ':' .. id, 'name', 'processedOn', 'finishedOn', 'returnvalue', 'failedReason', 'stc')
  if not job[1] then return 'missing', '' end
  if job[3] then
    if job[4] then return 'completed', job[4] end
    return tonumber(job[6] or 0) > 0 and 'interrupted' or 'failed', job[5] or ''
  end
  if not job[2] then return 'waiting', '' end
  return bull.holder(queue, id) and 'active' or 'silent', ''
end

-- The token that holds the lock of a job, or false.
function bull.holder(queue, id)
  return redis.call('GET', queue .. ':' .. id .. ':lock')
end

-- Gives the lock of a job to a token, for a number of ms.
local function lock(queue, id, token, ms)
  redis.call('SET', queue .. ':' .. id .. ':lock', token, 'PX', ms)
  return true
end

-- Takes the lock of a job if that has expired. Returns whether the token now holds it.
function bull.seize(queue, id, token, ms)
  return bull.read(queue, id) == 'silent' and lock(queue, id, token, ms)
end

-- Takes the lock of a job even from a token that still holds it. Fails when the job has ended.
function bull.replace(queue, id, token, ms)
  local state = bull.read(queue, id)
  return (state == 'silent' or state == 'active') and lock(queue, id, token, ms)
end

-- Whether a token holds the lock of a job. If the lock has expired and the job has not ended, the token gets it again.
function bull.keep(queue, id, token, ms)
  local holder = bull.holder(queue, id)
  if holder then return holder == token end
  return bull.seize(queue, id, token, ms)
end

-- Renews the lock of a job if the token holds it.
function bull.extend(queue, id, token, ms)
  if bull.holder(queue, id) ~= token then return false end
  -- Redis accepts PEXPIRE when its memory is full. It would refuse SET.
  redis.call('PEXPIRE', queue .. ':' .. id .. ':lock', ms)
  return true
end

function bull.hasWaiting(queue)
  return redis.call('LLEN', queue .. ':wait') > 0
end

function bull.isIdle(queue)
  return redis.call('LLEN', queue .. ':active') == 0
end

-- The active jobs whose locks have expired.
function bull.silent(queue)
  local found = {}
  for _, id in ipairs(redis.call('LRANGE', queue .. ':active', 0, -1)) do
    if not bull.holder(queue, id) then found[#found + 1] = id end
  end
  return found
end

-- Deletes a queue that has no active job. \`Queue.obliterate\` is not atomic: it would lose a job that is added between two of its steps.
function bull.obliterate(queue)
  local jobs = redis.call('LRANGE', queue .. ':wait', 0, -1)
  for _, set in ipairs({ 'completed', 'failed' }) do
    for _, id in ipairs(redis.call('ZRANGE', queue .. ':' .. set, 0, -1)) do jobs[#jobs + 1] = id end
  end
  for _, id in ipairs(jobs) do
    redis.call('DEL', queue .. ':' .. id, queue .. ':' .. id .. ':lock', queue .. ':' .. id .. ':logs')
  end
  for _, key in ipairs({ 'meta', 'events', 'id', 'marker', 'pc', 'wait', 'paused', 'completed', 'failed', 'stalled', 'stalled-check' }) do
    redis.call('DEL', queue .. ':' .. key)
  end
end
`
