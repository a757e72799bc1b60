/**
 * MCP tasks of protocol version 2025-11-25. A call of `tools/call` with `task` is answered with a task, and `tasks/result` blocks until the task has
 * ended. There are two differences to the Tasks extension: a result with `isError` makes a task `failed`, and `tasks/cancel` refuses a task that has
 * ended.
 */
import { ProtocolError, ProtocolErrorCode, type Result, type ServerContext } from '@modelcontextprotocol/server'
import { fromEvent, lastValueFrom, of, takeUntil, tap } from 'rxjs'
import { z } from 'zod'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Exchange } from './exchange.js'
import { isStarted, toToolResult, type McpCall, type McpTool, type StartedTask } from './mcp-tool.js'
import type { Elicitations } from './elicitations.js'
import type { TaskHandle, TaskHandles } from './task-handles.js'
import type { WireStatus } from './tasks-extension-wire.js'

/** The capabilities that the server declares to clients of 2025. */
export const TASKS_CAPABILITY = { list: {}, cancel: {}, requests: { tools: { call: {} } } }

export const listParamsSchema = z.looseObject({ cursor: z.string().optional() }).optional()

const PAGE_SIZE = 100

/** The maximum number of `tasks/result` requests of one client that wait at the same time. */
const MAX_WAITING = 1000

const RELATED_TASK = 'io.modelcontextprotocol/related-task'
const IMMEDIATE_RESPONSE = 'io.modelcontextprotocol/model-immediate-response'

/** A type, not an interface, because the SDK's results have an index signature. */
type Task2025 = {
  readonly taskId: string
  readonly status: WireStatus
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** The time to live, in ms from the creation; null while the task runs without a deadline. */
  readonly ttl: number | null
  readonly pollInterval: number
}

export interface Tasks2025 {
  /** The answer to a call that became a task. */
  created(handle: TaskHandle): Result
  get(handle: TaskHandle, canAsk: boolean): Task2025
  /** Resolves when the task has ended. While it waits, the client's user is asked the task's questions. */
  result(handle: TaskHandle, canAsk: boolean, context: ServerContext, exchange: Exchange): Promise<Result>
  list(owner: string, cursor: string | undefined, canAsk: boolean): Result
  cancel(handle: TaskHandle): Promise<Task2025>
}

export function createTasks2025(
  handles: TaskHandles,
  manager: AsyncTaskManager,
  elicitations: Elicitations,
): Tasks2025 {
  /** The number of waiting `tasks/result` requests of each owner. */
  const waiting = new Map<string, number>()
  const get: Tasks2025['get'] = (handle, canAsk) => {
    const { isAsking, ttlMs, pollIntervalMs, ...state } = handles.stateOf(handle)
    return { ...state, status: statusOf(handle, isAsking && canAsk), ttl: ttlMs, pollInterval: pollIntervalMs }
  }
  return {
    created: (handle) => {
      // The host gives this text to its model in place of the result.
      const text = `Task ${handle.started.taskId} runs in the background.`
      // The SDK checks the answer as the result of a tool, which must have `content`.
      return { content: [], task: { ...get(handle, false), status: 'working' }, _meta: { [IMMEDIATE_RESPONSE]: text } }
    },
    get,
    result: async (handle, canAsk, context, exchange) => {
      const { started, owner } = handle
      const { taskId } = started
      const count = waiting.get(owner) ?? 0
      if (count >= MAX_WAITING && handle.end === undefined) {
        const message = `A client can wait for ${MAX_WAITING} results at once with tasks/result. Wait until one has ended, or cancel one.`
        throw new ProtocolError(ProtocolErrorCode.InvalidRequest, message)
      }
      waiting.set(owner, count + 1)
      const asking = canAsk
        ? elicitations.askerOf(context, { meta: relatedTo(taskId) }).begin(() => undefined)
        : undefined
      try {
        await hasEnded(handle, handles, context, () => {
          const task = manager.getTask(taskId)
          if (task !== undefined) asking?.ask(task)
        })
      } finally {
        asking?.end()
        const left = (waiting.get(owner) ?? 1) - 1
        if (left === 0) waiting.delete(owner)
        else waiting.set(owner, left)
      }
      await handles.deliver(handle, exchange)
      return resultOf(handle)
    },
    list: (owner, cursor, canAsk) => {
      const all = handles.list(owner, placeOf(cursor))
      const page = all.slice(0, PAGE_SIZE)
      const last = page.at(-1)
      return {
        tasks: page.map((handle) => get(handle, canAsk)),
        ...(last !== undefined && all.length > page.length && { nextCursor: String(last.place) }),
      }
    },
    cancel: async (handle) => {
      const { taskId } = handle.started
      const { status } = get(handle, false)
      if (!manager.cancelTask(taskId)) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The task has already ended: its status is ${status}.`)
      }
      // A failure of the store was already logged (`onError`).
      await manager.stored().catch(() => undefined)
      return get(handle, false)
    },
  }
}

/** The `_meta` of every message that belongs to a task. */
export const relatedTo = (taskId: string) => ({ [RELATED_TASK]: { taskId } })

/**
 * Starts a call of a tool as an MCP task. The argument `async: true` is dropped, because the client follows the task itself.
 * @throws PROTOCOL_ERROR -32601 for a tool that cannot be called as a task
 * @throws PROTOCOL_ERROR -32602 or -32603 with the reason when the task does not start
 */
export async function startTask(
  tool: McpTool,
  { async: isAsync, ...args }: Readonly<Record<string, unknown>>,
  call: McpCall,
): Promise<StartedTask> {
  const started = await tool.start?.(
    isAsync === true || isAsync === undefined ? args : { ...args, async: isAsync },
    call,
  )
  if (started === undefined) {
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `The tool ${tool.name} cannot be called as a task.`)
  }
  if (isStarted(started)) return started
  const { content, _meta } = started as { content?: { text?: string }[]; _meta?: { code?: unknown } }
  const code =
    _meta?.code === 'parameter_validation' ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
  throw new ProtocolError(code, content?.map(({ text = '' }) => text).join('\n') ?? 'The task was not started.')
}

/** Resolves when the task has ended. Until then, calls `onOpen` at once and after each change of the task. */
async function hasEnded(
  handle: TaskHandle,
  handles: TaskHandles,
  { mcpReq: { signal } }: ServerContext,
  onOpen: () => void,
): Promise<void> {
  const aborted = signal.aborted ? of(undefined) : fromEvent(signal, 'abort')
  const open = tap(({ end }: TaskHandle) => {
    if (end === undefined) onOpen()
  })
  await lastValueFrom(handles.follow(handle).pipe(takeUntil(aborted), open), { defaultValue: undefined })
  if (handle.end !== undefined) return
  const why = signal.aborted ? 'The request was cancelled.' : 'The server has closed.'
  throw new ProtocolError(ProtocolErrorCode.InternalError, why)
}

/** @throws PROTOCOL_ERROR with the error that the call threw */
function resultOf({ started: { taskId }, end }: TaskHandle): Result {
  const outcome = end?.outcome
  if (outcome?.type === 'error') throw new ProtocolError(outcome.code, outcome.message, outcome.data)
  const result = outcome?.type === 'result' ? outcome.result : toToolResult(end?.statusMessage ?? '')
  return { ...result, _meta: { ...result._meta, ...relatedTo(taskId) } }
}

function statusOf({ end }: TaskHandle, isAsking: boolean): WireStatus {
  if (end === undefined) return isAsking ? 'input_required' : 'working'
  const { outcome } = end
  if (outcome.type === 'cancelled') return 'cancelled'
  return outcome.type === 'error' || outcome.result.isError === true ? 'failed' : 'completed'
}

/** @throws PROTOCOL_ERROR -32602 for an unknown cursor */
function placeOf(cursor = '0'): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor)
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'cursor: expected the nextCursor of an earlier result.')
}
