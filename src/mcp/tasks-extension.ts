/**
 * The server side of the Tasks extension (SEP-2663), on top of the registry. The SDK has none yet; when it has, it replaces this file and
 * `tasks-extension-wire.ts`.
 *
 * - A task is stored before the call that created it is answered. While it runs, requests show the state of the registry.
 * - Its result is stored when it ends: every later request gets the same one.
 * - Only its owner can access it; others get the same error as for an unknown id.
 * - Its handle holds the lease of its result: `tasks/get` delivers it, and nothing else does unless the client never asks.
 * - It is removed `retentionMs` after its end, which `ttlMs` announces. A running task is never removed.
 * - With a store, every task that an earlier process left has a handle. Its result is leased when it is asked for.
 */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { AsyncTaskInfo, SettledTaskInfo, TaskAnswer, TaskQuestion } from '../../machines/records.js'
import { cancellationText } from '../async-tasks/cancel-reason.js'
import { isTerminal } from '../../machines/task-entry.js'
import { previewText } from '../async-tasks/bounded-text.js'
import { describeFailure } from '../protocol/outcomes.js'
import { parseInput } from '../protocol/parse.js'
import { answerSchemaOf, taskAnswerSchema } from '../protocol/task-questions.js'
import type { Backend } from './backend.js'
import type { Confirmations } from './confirmations.js'
import type { Exchange, FindExchange } from './exchange.js'
import type { LowLevelServer } from './low-level-server.js'
import type { StartedTask } from './mcp-tool.js'
import {
  declaredBy,
  REQUIRED_CAPABILITIES,
  taskParamsSchema,
  updateParamsSchema,
  type WireDetails,
  type WireInputRequest,
  type WireTask,
} from './tasks-extension-wire.js'

export interface TasksExtensionOptions {
  readonly backend: Backend
  readonly confirmations: Confirmations
  /** The result of a call of an earlier process. */
  readonly toEarlierResult: StartedTask['toResult']
}

export interface TasksExtension {
  /** Stores a task that a call has started, and returns the answer to that call. */
  create(started: StartedTask, owner: string): Result
  /** Registers `tasks/get`, `tasks/update` and `tasks/cancel` for one owner. */
  register(server: LowLevelServer, owner: string, exchangeOf: FindExchange): void
  /** Unsubscribes from the registry and removes all tasks. */
  close(): void
}

/** The longest status message, in characters. */
const MESSAGE_CHARS = 1000

/** The most ended tasks that are kept; beyond it the oldest is removed early. */
const MAX_ENDED = 1000

interface Entry {
  readonly started: StartedTask
  readonly owner: string
  /** In ms since the epoch. */
  readonly createdAt: number
  updatedAt: number
  deadlineMs: number | undefined
  end: End | undefined
}

/** The end of a task. */
interface End {
  readonly at: number
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly statusMessage: string | undefined
  readonly details: WireDetails
}

export function createTasksExtension(options: TasksExtensionOptions): TasksExtension {
  const { backend, confirmations, toEarlierResult } = options
  const { manager, clock, session, config } = backend
  const { retentionMs, pollIntervalMs } = config.tasks
  const { registry } = manager
  const entries = new Map<string, Entry>()
  /** Ended tasks in the order of their ends. */
  const ended = new Set<string>()

  const settle = (taskId: string, record: SettledTaskInfo): void => {
    const entry = entries.get(taskId)
    if (entry === undefined || entry.end !== undefined) return
    entry.end = endOf(entry.started, record)
    ended.add(taskId)
    for (const oldest of ended) {
      if (ended.size <= MAX_ENDED) break
      forget(oldest)
    }
  }
  const forget = (taskId: string): void => {
    ended.delete(taskId)
    entries.delete(taskId)
    registry.send({ type: 'lease.release', deliveryId: leaseOf(taskId) })
  }
  const forgetExpired = (): void => {
    for (const taskId of ended) {
      const end = entries.get(taskId)?.end
      if (end !== undefined && end.at + retentionMs > clock.now()) break
      forget(taskId)
    }
  }
  const touch = ({ taskId }: { readonly taskId: string }): void => {
    const entry = entries.get(taskId)
    if (entry !== undefined) entry.updatedAt = clock.now()
  }
  const subscriptions = [
    manager.settled$.subscribe((record) => settle(record.id, record)),
    manager.progress$.subscribe(touch),
    manager.questions$.subscribe(touch),
  ]

  /** @throws ProtocolError -32602, the same for another owner's task as for an unknown id */
  const find = (taskId: string, owner: string): Entry => {
    forgetExpired()
    const entry = entries.get(taskId) ?? findEarlier(taskId)
    if (entry?.owner !== owner) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task, or it has expired.')
    }
    return entry
  }

  /** The handle of a task that an earlier process left, until its result expires. */
  const findEarlier = (taskId: string): Entry | undefined => {
    const record = session?.earlierTasks.has(taskId) === true ? manager.getTask(taskId) : undefined
    if (record === undefined) return undefined
    const { owner, launchedAt: createdAt, completedAt, timeoutMs: deadlineMs } = record
    if (completedAt !== undefined && completedAt + retentionMs <= clock.now()) return undefined
    const started = { taskId, toResult: toEarlierResult }
    const entry: Entry = {
      ...{ started, owner, createdAt, updatedAt: completedAt ?? createdAt, deadlineMs },
      end: undefined,
    }
    entries.set(taskId, entry)
    if (isTerminal(record)) settle(taskId, record)
    return entry
  }

  /** The message that carries a result to its client: the handle's, or one of its own for a handle of an earlier process. */
  const deliver = ({ started: { taskId }, owner }: Entry, exchange: Exchange): void => {
    const begunAt = confirmations.begin()
    const lease = manager.lease({ owner, taskIds: [taskId] })
    exchange.onEnd((isWritten) => {
      if (!isWritten) {
        lease?.release()
        return
      }
      confirmations.confirm(owner, begunAt)
      confirmations.noteWritten(owner)
      registry.batch(() => {
        lease?.acknowledge()
        registry.send({ type: 'lease.acknowledge', deliveryId: leaseOf(taskId) })
        manager.markNotified(taskId)
      })
    })
  }

  const wireOf = (entry: Entry): WireTask => {
    const { started, createdAt, updatedAt, deadlineMs, end } = entry
    const record = manager.getTask(started.taskId)
    const isAsking = end === undefined && record?.questions !== undefined
    const message = end === undefined ? workingMessage(record) : end.statusMessage
    return {
      taskId: started.taskId,
      status: end?.status ?? (isAsking ? 'input_required' : 'working'),
      ...(message !== undefined && { statusMessage: previewText(message, MESSAGE_CHARS) }),
      createdAt: new Date(createdAt).toISOString(),
      lastUpdatedAt: new Date(end?.at ?? updatedAt).toISOString(),
      ttlMs: ttlOf(end === undefined ? deadlineMs : end.at - createdAt),
      pollIntervalMs,
    }
  }
  const ttlOf = (lifeMs: number | undefined): number | null =>
    lifeMs === undefined ? null : Math.ceil(lifeMs + retentionMs)

  const get = (entry: Entry, canAsk: boolean, exchange: Exchange): Result => {
    const task = wireOf(entry)
    if (entry.end !== undefined) {
      deliver(entry, exchange)
      return { ...task, ...entry.end.details, resultType: 'complete' }
    }
    if (task.status !== 'input_required') return { ...task, resultType: 'complete' }
    // Without elicitation the client cannot ask its user; the model can still answer with the tool answer_async_task.
    if (!canAsk) return { ...task, status: 'working', resultType: 'complete' }
    return { ...task, inputRequests: requestsOf(manager.getTask(task.taskId)?.questions ?? []), resultType: 'complete' }
  }

  /** Checks all answers before it passes on the first. */
  const update = ({ started: { taskId } }: Entry, responses: Readonly<Record<string, unknown>>): void => {
    const { questions = [] } = manager.getTask(taskId) ?? {}
    const answers = questions
      .filter(({ id }) => Object.hasOwn(responses, id))
      .map((question) => ({ id: question.id, answer: answerTo(question, responses[question.id]) }))
    for (const { id, answer } of answers) manager.answerTask(taskId, id, answer)
  }

  return {
    create: (started, owner) => {
      forgetExpired()
      const record = manager.getTask(started.taskId)
      const now = clock.now()
      const entry: Entry = {
        started,
        owner,
        createdAt: record?.launchedAt ?? now,
        updatedAt: now,
        deadlineMs: record?.timeoutMs,
        end: undefined,
      }
      entries.set(started.taskId, entry)
      registry.takeLease({ deliveryId: leaseOf(started.taskId), taskIds: [started.taskId], isClaim: true })
      // It may have ended before this subscribed to its end.
      if (record !== undefined && isTerminal(record)) settle(started.taskId, record)
      return { ...wireOf(entry), resultType: 'task' }
    },
    register: (server, owner, exchangeOf) => {
      server.setRequestHandler('tasks/get', { params: taskParamsSchema }, ({ taskId }, context) => {
        const { hasElicitation } = checkDeclared(context)
        return get(find(taskId, owner), hasElicitation, exchangeOf(context))
      })
      server.setRequestHandler('tasks/update', { params: updateParamsSchema }, (params, context) => {
        checkDeclared(context)
        // The SDK moves `inputResponses` from the parameters to the context for the methods that it knows.
        update(find(params.taskId, owner), params.inputResponses ?? context.mcpReq.inputResponses ?? {})
        return ACKNOWLEDGEMENT
      })
      server.setRequestHandler('tasks/cancel', { params: taskParamsSchema }, ({ taskId }, context) => {
        checkDeclared(context)
        manager.cancelTask(find(taskId, owner).started.taskId)
        return ACKNOWLEDGEMENT
      })
    },
    close: () => {
      for (const subscription of subscriptions) subscription.unsubscribe()
      entries.clear()
      ended.clear()
    },
  }
}

const leaseOf = (taskId: string): string => `task-${taskId}`

const ACKNOWLEDGEMENT: Result = { resultType: 'complete' }

/** @throws MissingRequiredClientCapabilityError (-32021) unless the request declares the extension */
export function checkDeclared(context: ServerContext): ReturnType<typeof declaredBy> {
  const declared = declaredBy(context)
  if (declared.hasTasks) return declared
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: REQUIRED_CAPABILITIES })
}

/** A result with `isError` is `completed`: only a JSON-RPC error makes a task `failed` (SEP-2663). */
function endOf(started: StartedTask, record: SettledTaskInfo): End {
  const at = record.completedAt
  if (record.status === 'cancelled') {
    return { at, status: 'cancelled', statusMessage: cancellationText('The task', record), details: {} }
  }
  try {
    // `resultType` is on every result since protocol version 2026-07-28.
    const result = Object.freeze({ resultType: 'complete', ...started.toResult(record) })
    return { at, status: 'completed', statusMessage: record.error, details: { result } }
  } catch (error) {
    const { code, message, data } = toJsonRpcError(error)
    return {
      at,
      status: 'failed',
      statusMessage: message,
      details: { error: { code, message, ...(data !== undefined && { data }) } },
    }
  }
}

function toJsonRpcError(error: unknown): { code: number; message: string; data?: unknown } {
  if (error instanceof ProtocolError) return error
  return { code: ProtocolErrorCode.InternalError, message: describeFailure(error) }
}

function workingMessage(record: AsyncTaskInfo | undefined): string | undefined {
  const [question] = record?.questions ?? []
  if (question !== undefined) return `Waiting for an answer: ${question.message}`
  if (record?.status === 'queued') return 'Waiting for a slot.'
  const { progress, total, message } = record?.progress ?? {}
  if (progress === undefined) return undefined
  const done = total === undefined ? String(progress) : `${progress} of ${total}`
  return message === undefined ? done : `${done}: ${message}`
}

function requestsOf(questions: readonly TaskQuestion[]): Record<string, WireInputRequest> {
  return Object.fromEntries(
    questions.map(({ id, message, schema }) => [
      id,
      { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema: schema } },
    ]),
  )
}

/** @throws ProtocolError -32602 for an answer that does not match its question's schema; the question stays open */
function answerTo({ id, schema }: TaskQuestion, response: unknown): TaskAnswer {
  const name = `inputResponses.${id}`
  try {
    const answer = parseInput(taskAnswerSchema().strip(), response, name) as TaskAnswer
    if (answer.action === 'accept') parseInput(answerSchemaOf(schema), answer.content ?? {}, `${name}.content`)
    return answer
  } catch (error) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, describeFailure(error))
  }
}
