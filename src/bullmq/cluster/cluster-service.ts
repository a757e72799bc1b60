/** Answers requests about all tasks of the cluster, for the REST routes and sockets of one server. */
import { NOT_STORED, refusal, readSubmission } from '../../command-tasks/submission.js'
import type { TaskStatus, TaskSubmitMessage } from '../../protocol/command-tasks.js'
import { DEFAULT_LIST_LIMIT } from '../../protocol/client-messages.js'
import { jsonBytes } from '../../data/json-size.js'
import { toJson } from '../../server/http/json.js'
import type { ServerConfig } from '../../protocol/server-config.js'
import { eventWithInlineResults } from '../../server/backend/inline-results.js'
import {
  type createCursors,
  INVALID_CURSOR,
  refusalOf,
  TASK_NOT_FOUND,
  type Cancelled,
  type Listed,
  type Submitted,
  type TaskQuery,
  type TaskService,
} from '../../server/backend/task-service.js'
import { instanceNotFound } from '../../command-tasks/instances/not-found.js'
import { toTaskEvent } from './feed-event.js'
import type { ClusterRedis } from './cluster-redis.js'
import type { InstanceQueue } from './instance-queue.js'
import { endFields, endTask, submissionField, summaryField, type ClusterTask } from './task-fields.js'

export interface ClusterServiceOptions {
  readonly redis: ClusterRedis
  readonly limits: ServerConfig['tasks']
  readonly cursors: ReturnType<typeof createCursors>
  readonly queueOf: (instanceId: string) => InstanceQueue
  readonly isDraining: () => boolean
  readonly now: () => number
  /** Starts waiting for the end of a task. Call this function before the request that ends the task, or the event can be missed. */
  readonly expectEnd: (taskId: string) => ExpectedEnd
  /** Rejects when Redis takes longer than its time limit to settle `promise`. */
  readonly inTime: <T>(promise: Promise<T>) => Promise<T>
  readonly onError: (error: unknown) => void
}

export interface ExpectedEnd {
  /** Resolves when the subscribers on this server were notified of the end, or after twice `lockMs`. */
  readonly told: Promise<void>
  stop(): void
}

/** The number of tasks that a list reads from Redis at once. */
const BATCH = 200

export function createClusterService(options: ClusterServiceOptions): TaskService {
  const { redis, limits, cursors, queueOf, now, expectEnd, inTime, onError } = options
  /** The last submission to each instance. The next one waits for it, so that tasks run in the order in which a client submitted them. */
  const last = new Map<string, Promise<unknown>>()

  /**
   * Stores the record of the task, then adds its job, and then confirms both. After a crash in between, the client has no answer, and the task does
   * not run.
   */
  async function accept(message: TaskSubmitMessage, idempotencyKey: string | undefined): Promise<Submitted> {
    const read = readSubmission(message)
    if ('error' in read) return read
    const { submission, instanceId } = read
    const createdAt = now()
    const record = submissionField(submission)
    const bytes = jsonBytes(submission, limits.maxTaskBytes)
    if (bytes > limits.maxTaskBytes) {
      return refusal(
        'INVALID_TASK',
        `task: got ${bytes} or more bytes of JSON, expected at most ${limits.maxTaskBytes}.`,
      )
    }
    const accepting = redis.accept(
      instanceId,
      { record, summary: summaryField(submission), createdAt, bytes, key: idempotencyKey ?? '' },
      { queue: limits.maxQueueSize, bytes: limits.maxBytes },
    )
    const giveUp = (error: unknown): never => {
      // Redis may still accept the task later. The task is then dropped, because the client received no answer. Unconfirmed tasks do not run.
      void accepting.then(([late, id]) => late === 'OK' && redis.abandon(id)).catch(() => undefined)
      throw error
    }
    const [code, taskId, accepted, position] = await inTime(accepting).catch(giveUp)
    if (code === 'KNOWN') return { taskId, queuePosition: position }
    if (code === 'INVALID_INSTANCE' && instanceId !== undefined) {
      const known = (await inTime(redis.instances())).map(({ id }) => id)
      return refusal('INVALID_INSTANCE', instanceNotFound(instanceId, known))
    }
    if (code !== 'OK' && code !== 'JOINING') return refusals[code]?.(instanceId ?? '', limits) ?? NOT_STORED
    // A repeated request adds the job, too, because the first node may have died before it did. BullMQ ignores a second add of the same id.
    await inTime(queueOf(accepted).add(taskId, submission.name)).catch(giveUp)
    // This call has no time limit: only the answer of Redis shows whether the task will run.
    return (await redis.confirm(taskId)) ? { taskId, queuePosition: position } : NOT_STORED
  }

  async function submit(message: TaskSubmitMessage, idempotencyKey?: string): Promise<Submitted> {
    const refused = refusalOf({ isEnabled: limits.enabled, isDraining: options.isDraining })
    if (refused !== undefined) return refused
    const lane = typeof message.instanceId === 'string' ? message.instanceId : ''
    const before = last.get(lane) ?? Promise.resolve()
    const submitted = inTime(before)
      .then(() => accept(message, idempotencyKey))
      .catch((error: unknown): Submitted => {
        onError(error)
        return NOT_STORED
      })
    last.set(lane, submitted)
    void submitted.then(() => last.get(lane) === submitted && last.delete(lane))
    return submitted
  }

  async function list({ instanceId, status = 'all', limit = DEFAULT_LIST_LIMIT, cursor }: TaskQuery): Promise<Listed> {
    let before = cursor === undefined ? Infinity : cursors.read(cursor)
    if (before === undefined) return INVALID_CURSOR
    const found: { readonly place: number; readonly summary: Listing }[] = []
    for (;;) {
      const page: Awaited<ReturnType<ClusterRedis['page']>> = await inTime(redis.page(instanceId, before, BATCH))
      for (const { place, summary } of page) {
        if (summary !== undefined && isWanted(summary.status, status)) found.push({ place, summary })
      }
      before = page.at(-1)?.place
      if (before === undefined || page.length < BATCH || found.length > limit) break
    }
    const tasks = found.slice(0, limit)
    const lastPlace = tasks.at(-1)?.place
    const hasMore = found.length > limit && lastPlace !== undefined
    return { tasks: tasks.map(({ summary }) => summary), ...(hasMore && { nextCursor: cursors.write(lastPlace) }) }
  }

  async function cancelQueued(found: ClusterTask): Promise<boolean> {
    const { task, message } = endTask(found, (ended) => void ended.cancel(undefined), now())
    if (!(await redis.endQueued(task.id, toJson(eventWithInlineResults(message)), endFields(task)))) return false
    // If a node has fetched the job meanwhile, that node finds that the task has ended.
    await queueOf(task.instanceId)
      .remove(task.id)
      .catch(() => undefined)
    return true
  }

  async function cancel(taskId: string): Promise<Cancelled> {
    const found = await inTime(redis.read(taskId))
    if (found === undefined) return { success: false, error: TASK_NOT_FOUND, code: 'TASK_NOT_FOUND' }
    const end = expectEnd(taskId)
    try {
      const isQueued = found.task.status === 'queued'
      if ((isQueued && (await cancelQueued(found))) || (await redis.askCancel(taskId, ''))) await end.told
    } finally {
      end.stop()
    }
    const status = (await redis.read(taskId))?.task.status ?? 'cancelled'
    if (status === 'running') return NOT_CANCELLED
    return found.task.completedAt === undefined && status === 'cancelled'
      ? { success: true }
      : { success: false, error: `Task already ${status}`, code: 'TASK_ENDED' }
  }

  return {
    submit,
    list,
    cancel,
    get: async (taskId) => (await inTime(redis.read(taskId)))?.task,
    follow: async (taskId, lastEventId) => {
      const after = lastEventId !== undefined && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : undefined
      const { found, events } = await inTime(redis.readWithLog(taskId, after ?? Number.MAX_SAFE_INTEGER))
      if (found === undefined) return undefined
      const { task, seq } = found
      const hasAll = after !== undefined && after <= seq && (after === seq || events.length > 0)
      const missed = hasAll ? events.map((event) => toTaskEvent(event)) : undefined
      return { task, seq, missed, idOf: (place) => String(place) }
    },
  }
}

type Listing = Extract<Listed, { tasks: unknown }>['tasks'][number]

const isWanted = (status: TaskStatus, wanted: TaskStatus | 'all'): boolean => wanted === 'all' || status === wanted

const NOT_CANCELLED: Cancelled = {
  success: false,
  error:
    'The cancellation is stored, but the server that runs the task has not confirmed it yet. Read the task again later.',
  code: 'NOT_STORED',
}

const refusals: Readonly<Record<string, (instanceId: string, limits: ServerConfig['tasks']) => Submitted>> = {
  REUSED: () =>
    refusal('IDEMPOTENCY_KEY_REUSED', 'This idempotency key was used for another task. Choose another key.'),
  NO_INSTANCE: () => refusal('NO_INSTANCE', 'No instance is connected'),
  NOT_CONNECTED: (id) => refusal('NOT_CONNECTED', `Instance not connected: ${id}`),
  QUEUE_FULL: (_id, { maxQueueSize }) =>
    refusal('QUEUE_FULL', `Task queue is full (max ${maxQueueSize}, maxQueueSize)`),
  NO_ROOM: (_id, { maxBytes }) =>
    refusal(
      'QUEUE_FULL',
      `Task queue is full: with this task, the unfinished tasks would hold more than ${maxBytes} bytes of JSON (maxBytes)`,
    ),
}
