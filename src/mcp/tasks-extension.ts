/**
 * The server side of the Tasks extension (SEP-2663), over the registry. The SDK has none yet; when it grows one, this file
 * and `tasks-extension-wire.ts` are what it replaces.
 *
 * - A task is known here before the call that created it is answered, and shows what the registry shows.
 * - Its end is fixed when it ends: later requests get the same.
 * - It can be asked for by its owner alone; anyone else gets the answer for an id that does not exist.
 * - An ended task is forgotten `retentionMs` after its end, one that works never is: `ttlMs` says so.
 */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { AsyncTaskInfo, SettledTaskInfo, TaskAnswer, TaskQuestion } from '../../machines/records.js'
import { previewText } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Clock } from '../clock.js'
import { describeFailure } from '../protocol/outcomes.js'
import { parseInput } from '../protocol/parse.js'
import { answerSchemaOf, taskAnswerSchema } from '../protocol/task-questions.js'
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
  readonly manager: AsyncTaskManager
  readonly clock: Clock
  /** How long the end of a task is kept, in ms. */
  readonly retentionMs: number
  /** How often a client should ask, in ms. */
  readonly pollIntervalMs: number
}

export interface TasksExtension {
  /** Takes in a task that a call has started, and gives the answer to that call. */
  create(started: StartedTask, owner: string): Result
  /** Registers tasks/get, tasks/update and tasks/cancel for one caller. */
  register(server: LowLevelServer, owner: string): void
  /** Forgets everything. */
  close(): void
}

/** The longest status message, in characters. */
const MESSAGE_CHARS = 1000

/** How many ended tasks are kept whose results nobody has fetched and whose time has not come. */
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

/** How a task ended, for good. */
interface End {
  readonly at: number
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly statusMessage: string | undefined
  readonly details: WireDetails
}

export function createTasksExtension(options: TasksExtensionOptions): TasksExtension {
  const { manager, clock, retentionMs, pollIntervalMs } = options
  const entries = new Map<string, Entry>()
  /** In the order in which they ended. */
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

  /** @throws ProtocolError -32602, the same for a task of someone else's as for one that never was */
  const find = (taskId: string, owner: string): Entry => {
    forgetExpired()
    const entry = entries.get(taskId)
    if (entry?.owner !== owner) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task, or it has expired.')
    }
    return entry
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

  const get = (entry: Entry, canAsk: boolean): Result => {
    const task = wireOf(entry)
    if (entry.end !== undefined) {
      // The client has the result now: no reminder need tell of it.
      manager.markNotified(task.taskId)
      return { ...task, ...entry.end.details, resultType: 'complete' }
    }
    if (task.status !== 'input_required') return { ...task, resultType: 'complete' }
    // A client that cannot ask its user must not be sent a request to do so; its model can answer with a tool.
    if (!canAsk) return { ...task, status: 'working', resultType: 'complete' }
    return { ...task, inputRequests: requestsOf(manager.getTask(task.taskId)?.questions ?? []), resultType: 'complete' }
  }

  /** Nothing is answered unless everything that is answered fits. */
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
      // It may have ended before anybody here knew of it.
      if (record !== undefined && record.status !== 'running') settle(started.taskId, record)
      return { ...wireOf(entry), resultType: 'task' }
    },
    register: (server, owner) => {
      server.setRequestHandler('tasks/get', { params: taskParamsSchema }, ({ taskId }, context) => {
        const { hasElicitation } = checkDeclared(context)
        return get(find(taskId, owner), hasElicitation)
      })
      server.setRequestHandler('tasks/update', { params: updateParamsSchema }, (params, context) => {
        checkDeclared(context)
        // The SDK lifts answers out of the parameters of the requests that it knows, and may do so here.
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

const ACKNOWLEDGEMENT: Result = { resultType: 'complete' }

/** @throws MissingRequiredClientCapabilityError (-32021) unless the request declares the extension */
export function checkDeclared(context: ServerContext): ReturnType<typeof declaredBy> {
  const declared = declaredBy(context)
  if (declared.hasTasks) return declared
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: REQUIRED_CAPABILITIES })
}

/** A result that says it failed is a result: only a JSON-RPC error makes a task `failed`. */
function endOf(started: StartedTask, record: SettledTaskInfo): End {
  const at = record.completedAt
  if (record.status === 'cancelled') {
    return { at, status: 'cancelled', statusMessage: 'The task was cancelled.', details: {} }
  }
  try {
    // As it would have been answered: with what the protocol puts on every result.
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
  if (question !== undefined) return `Waits for an answer: ${question.message}`
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

/** @throws ProtocolError -32602 for an answer that does not fit its question; the question stays open */
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
