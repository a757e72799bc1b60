/**
 * The handles of MCP tasks, one for each task that a call has started. Both generations of MCP tasks (`tasks-extension.ts`, `tasks-2025.ts`) answer from
 * them.
 *
 * - A handle exists before the call that started its task is answered. While the task runs, requests return its current state.
 * - When the task ends, the handle keeps the result, and every later request returns the same result.
 * - Only its owner can access a handle. Others get the same error as for an unknown id.
 * - The handle holds the lease of the task's result, so no other answer carries the result. A request for the result delivers it. If the client never
 * requests it, the lease ends with the handle.
 * - A handle is removed `retentionMs` after the end of its task, as its time to live announces. The handle of a running task is never removed.
 * - With a store, every task of an earlier process has a handle. Its result is leased when the client requests it.
 */
import { claim, endClaim } from '../features/delivery/leases.js'
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { filter, merge, of, Subject, takeWhile, type Observable } from 'rxjs'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { isTerminal } from '../../machines/task-entry.js'
import { previewText } from '../features/output/bounded-text.js'
import { cancellationText } from '../async-tasks/cancel-reason.js'
import { stoppingText } from '../features/stopping/stopping.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { describeFailure } from '../protocol/outcomes.js'
import type { Backend } from './backend.js'
import type { Confirmations } from './confirmations.js'
import type { Exchange } from './exchange.js'
import type { StartedTask } from './mcp-tool.js'
import { isForm } from './question-forms.js'
import { wasStopped } from '../../machines/task-status.js'

export interface TaskHandlesOptions {
  readonly backend: Backend
  readonly confirmations: Confirmations
  /** Makes the result of a call that an earlier process received. */
  readonly toEarlierResult: StartedTask['toResult']
}

export interface TaskHandle {
  readonly started: StartedTask
  readonly owner: string
  /** The position of the handle in the order of creation, from 1. */
  readonly place: number
  /** In ms since the epoch. */
  readonly createdAt: number
  updatedAt: number
  deadlineMs: number | undefined
  end: TaskEnd | undefined
}

/** The end of a task: what the call returned, or the JSON-RPC error that it threw. */
export interface TaskEnd {
  readonly at: number
  readonly statusMessage: string | undefined
  readonly outcome:
    | { readonly type: 'result'; readonly result: ReturnType<StartedTask['toResult']> }
    | { readonly type: 'error'; readonly code: number; readonly message: string; readonly data?: unknown }
    | { readonly type: 'cancelled' }
}

export interface TaskState {
  readonly taskId: string
  /** Whether the task runs and has an open question that a form can show. */
  readonly isAsking: boolean
  readonly statusMessage?: string
  /** ISO 8601. */
  readonly createdAt: string
  /** ISO 8601. */
  readonly lastUpdatedAt: string
  /** The time to live, in ms from the creation; null while the task runs without a deadline. */
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
}

export interface TaskHandles {
  create(started: StartedTask, owner: string): TaskHandle
  /** @throws PROTOCOL_ERROR -32602, the same for another owner's task as for an unknown id */
  find(taskId: string, owner: string): TaskHandle
  /** The handles of an owner, in the order of creation, whose place is greater than `after`. */
  list(owner: string, after: number): TaskHandle[]
  stateOf(handle: TaskHandle): TaskState
  /** Removes expired handles. If the client never requested the result of such a task, other answers carry it from now on. */
  forgetExpired(): void
  /**
   * Leases the result of an ended task for an answer. The result is delivered when the answer was written out. Resolves when the lease is stored;
   * rejects with StoreError.
   */
  deliver(handle: TaskHandle, exchange: Exchange): Promise<void>
  /** Emits the handle of a task that has asked a question, was answered or has ended. */
  readonly changes$: Observable<TaskHandle>
  /** Emits a handle at once and after each change. Completes when its task has ended, or the server closes. */
  follow(handle: TaskHandle): Observable<TaskHandle>
  /** Unsubscribes from the registry and removes all handles. */
  readonly close: () => void
}

/** The maximum length of a status message, in characters. */
const MESSAGE_CHARS = 1000

/** The maximum number of handles of ended tasks. When there are more, the oldest is removed before it expires. */
const MAX_ENDED = 1000

export function createTaskHandles({ backend, confirmations, toEarlierResult }: TaskHandlesOptions): TaskHandles {
  const { manager, clock, session, config } = backend
  const { retentionMs, pollIntervalMs } = config.tasks
  const handles = new Map<string, TaskHandle>()
  /** The ids of ended tasks, in the order in which they ended. */
  const ended = new Set<string>()
  const changes$ = new Subject<TaskHandle>()
  let count = 0

  const add = (handle: Omit<TaskHandle, 'place' | 'end'>): TaskHandle => {
    const added: TaskHandle = { ...handle, place: (count += 1), end: undefined }
    handles.set(handle.started.taskId, added)
    return added
  }
  const settle = (taskId: string, record: SettledTaskInfo): void => {
    const handle = handles.get(taskId)
    if (handle === undefined || handle.end !== undefined) return
    handle.end = endOf(handle.started, record)
    ended.add(taskId)
    for (const oldest of ended) {
      if (ended.size <= MAX_ENDED) break
      forget(oldest)
    }
    changes$.next(handle)
  }
  const forget = (taskId: string): void => {
    ended.delete(taskId)
    handles.delete(taskId)
    endClaim(manager, leaseOf(taskId), 'release')
  }
  const forgetExpired = (): void => {
    for (const taskId of ended) {
      const end = handles.get(taskId)?.end
      if (end !== undefined && end.at + retentionMs > clock.now()) break
      forget(taskId)
    }
  }
  const touch = ({ taskId }: { readonly taskId: string }): TaskHandle | undefined => {
    const handle = handles.get(taskId)
    if (handle !== undefined) handle.updatedAt = clock.now()
    return handle
  }
  const subscriptions = [
    manager.settled$.subscribe((record) => settle(record.id, record)),
    manager.progress$.subscribe(touch),
    manager.questions$.subscribe((event) => {
      const handle = touch(event)
      if (handle !== undefined && handle.end === undefined) changes$.next(handle)
    }),
  ]

  /** Makes the handle of a task of an earlier process; undefined if there is no such task, or its result has expired. */
  const findEarlier = (taskId: string): TaskHandle | undefined => {
    const record = session?.earlierTasks.has(taskId) === true ? manager.getTask(taskId) : undefined
    if (record === undefined) return undefined
    const { owner, launchedAt: createdAt, completedAt, timeoutMs: deadlineMs } = record
    if (completedAt !== undefined && completedAt + retentionMs <= clock.now()) return undefined
    const started = { taskId, toResult: toEarlierResult }
    const handle = add({ started, owner, createdAt, updatedAt: completedAt ?? createdAt, deadlineMs })
    if (isTerminal(record)) settle(taskId, record)
    return handle
  }

  return {
    create: (started, owner) => {
      forgetExpired()
      const record = manager.getTask(started.taskId)
      const now = clock.now()
      const handle = add({
        started,
        owner,
        updatedAt: now,
        createdAt: record?.launchedAt ?? now,
        deadlineMs: record?.timeoutMs,
      })
      claim(manager, leaseOf(started.taskId), started.taskId)
      // If the task has ended before it had a handle, `settled$` did not settle the handle.
      if (record !== undefined && isTerminal(record)) settle(started.taskId, record)
      return handle
    },
    find: (taskId, owner) => {
      forgetExpired()
      const handle = handles.get(taskId) ?? findEarlier(taskId)
      if (handle?.owner !== owner) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task, or it has expired.')
      }
      return handle
    },
    list: (owner, after) => {
      forgetExpired()
      for (const id of session?.earlierTasks ?? []) if (!handles.has(id)) findEarlier(id)
      return [...handles.values()].filter((handle) => handle.owner === owner && handle.place > after)
    },
    stateOf: ({ started: { taskId }, createdAt, updatedAt, deadlineMs, end }) => {
      const record = manager.getTask(taskId)
      const stopping = end && stoppingText(manager.reads, taskId)
      const said = end === undefined ? workingMessage(record) : end.statusMessage
      const message = stopping === undefined ? said : `It is ${stopping}. ${said ?? ''}`.trimEnd()
      const lifeMs = end === undefined ? deadlineMs : end.at - createdAt
      return {
        taskId,
        isAsking: end === undefined && record?.questions?.some(isForm) === true,
        ...(message !== undefined && { statusMessage: previewText(message, MESSAGE_CHARS) }),
        createdAt: new Date(createdAt).toISOString(),
        lastUpdatedAt: new Date(end?.at ?? updatedAt).toISOString(),
        ttlMs: lifeMs === undefined ? null : Math.ceil(lifeMs + retentionMs),
        pollIntervalMs,
      }
    },
    deliver: async ({ started: { taskId }, owner }, exchange) => {
      const begunAt = confirmations.begin()
      // The lease that the handle holds. The handle of a task of an earlier process holds none, so it gets a new one.
      const lease = manager.lease({ owner, taskIds: [taskId] })
      await lease?.stored
      exchange.onEnd((isWritten) => {
        if (!isWritten) {
          lease?.release()
          return
        }
        confirmations.confirm(owner, begunAt)
        confirmations.noteWritten(owner)
        manager.reads.batch(() => {
          lease?.acknowledge()
          endClaim(manager, leaseOf(taskId), 'acknowledge')
          manager.markNotified(taskId)
        })
      })
    },
    forgetExpired,
    changes$,
    follow: (handle) =>
      merge(changes$, of(handle)).pipe(
        filter((changed) => changed === handle),
        takeWhile(({ end }) => end === undefined, true),
      ),
    close: () => {
      for (const subscription of subscriptions) subscription.unsubscribe()
      handles.clear()
      ended.clear()
      changes$.complete()
    },
  }
}

export const leaseOf = (taskId: string): string => `task-${taskId}`

function endOf(started: StartedTask, record: SettledTaskInfo): TaskEnd {
  const at = record.completedAt
  if (wasStopped(record.status)) {
    return { at, statusMessage: cancellationText('The task', record), outcome: { type: 'cancelled' } }
  }
  try {
    const result = Object.freeze(started.toResult(record))
    return { at, statusMessage: record.error, outcome: { type: 'result', result } }
  } catch (error) {
    const { code, message, data } = toJsonRpcError(error)
    const outcome = { type: 'error', code, message, ...omitUndefined({ data }) } as const
    return { at, statusMessage: message, outcome }
  }
}

function toJsonRpcError(error: unknown): { code: number; message: string; data?: unknown } {
  if (error instanceof ProtocolError) return error
  return { code: ProtocolErrorCode.InternalError, message: describeFailure(error) }
}

function workingMessage(record: AsyncTaskInfo | undefined): string | undefined {
  const [question] = record?.questions ?? []
  if (question !== undefined) return `Waiting for an answer: ${question.message}`
  return record?.progress && progressText(record.progress)
}

function progressText({ progress, total, message }: NonNullable<AsyncTaskInfo['progress']>): string {
  const done = total === undefined ? String(progress) : `${progress} of ${total}`
  return message === undefined ? done : `${done}: ${message}`
}
