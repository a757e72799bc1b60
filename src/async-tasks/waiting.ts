/** Waiting for tasks to end, and for everything to be told. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { TaskEntry } from '../../machines/task-table.js'
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import { parseInput } from '../protocol/parse.js'
import { isEnd, type RegistryCore } from './core.js'

/** How to wait. */
export interface WaitOptions {
  /** `all` (default) waits for the last of them, `any` for the first. */
  readonly mode?: 'all' | 'any'
  /** The longest wait in ms; without it the wait ends with the tasks. */
  readonly timeoutMs?: number
  /** Ends the wait early: the promise rejects with the signal's reason, and nothing is acknowledged. */
  readonly signal?: AbortSignal
}

/** How to wait for what is worded for a model. */
export interface WordedWaitOptions extends WaitOptions {
  /**
   * Called with what has ended, in the step that acknowledges it and before: what is cut is noted here, while its record
   * cannot be pruned. If it throws, the wait rejects and nothing is acknowledged.
   */
  readonly onSettled?: (settled: readonly SettledTaskInfo[]) => void
  /** The wait is also over as soon as one of the tasks waits for an answer: whoever waits may have to give it. */
  readonly endsOnQuestion?: boolean
}

/** How the tasks stood when the wait was over. */
export interface WaitResult {
  /** Named tasks that had ended. */
  readonly settled: readonly SettledTaskInfo[]
  /** Named tasks that still ran. */
  readonly pending: readonly AsyncTaskInfo[]
  /** Named ids that no retained task holds. */
  readonly unknown: readonly string[]
}

const idsSchema = lazily(() => z.array(z.string()))
const optionsSchema = lazily(() =>
  z.object({
    mode: z.enum(['all', 'any']).optional(),
    timeoutMs: z.number().min(0).optional(),
    signal: z.custom<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal').optional(),
    endsOnQuestion: z.boolean().default(false),
    onSettled: z
      .custom<NonNullable<WordedWaitOptions['onSettled']>>((value) => typeof value === 'function', 'a function')
      .optional(),
  }),
)

/**
 * Waits until the tasks have ended. Their ends are leased as they come, so that no reminder tells of them meanwhile;
 * what is returned is acknowledged, and an aborted wait gives everything back.
 */
export async function waitForTasks(
  core: RegistryCore,
  taskIds: readonly string[],
  waitOptions: WordedWaitOptions,
  deliveryId: string,
): Promise<WaitResult> {
  const ids = [...new Set(parseInput(idsSchema(), taskIds, 'ids'))]
  const options = parseInput(optionsSchema(), waitOptions, 'options')
  const { mode = 'all', timeoutMs, signal, onSettled, endsOnQuestion } = options
  signal?.throwIfAborted()
  const found = ids.map((id) => core.table.get(id)).filter((entry): entry is TaskEntry => entry !== undefined)
  const unknown = ids.filter((id) => core.table.get(id) === undefined)
  core.transact(() =>
    core.send({ type: 'lease.take', request: { deliveryId, taskIds: found.map((e) => e.record.id), isClaim: true } }),
  )
  const isOver = (): boolean =>
    (endsOnQuestion && found.some(isAsking)) ||
    (mode === 'all' || found.length === 0 ? found.every(hasEnded) : found.some(hasEnded))
  try {
    // A subscriber that was just told of the lease may have aborted the signal: nothing would be heard of it later.
    if (!isOver() && !core.isDisposed && signal?.aborted !== true) {
      await waitUntil(core, { isOver, found, timeoutMs, signal })
    }
    // The signal may also have aborted after the last of them ended and before this resumed.
    signal?.throwIfAborted()
    // Read and acknowledged in one step: what ended while this was resuming is in the result, or not acknowledged.
    return core.transact(() => {
      const ended = found.filter(hasEnded)
      const pending = found.filter((entry) => !hasEnded(entry)).map((entry) => entry.record)
      onSettled?.(ended.map((entry) => entry.record as SettledTaskInfo))
      core.send({ type: 'lease.acknowledge', deliveryId })
      // What another message has on its way was returned all the same: if that one is refused, it is not owed again.
      core.send({ type: 'lease.acknowledge', deliveryId, late: ended })
      return { settled: ended.map((entry) => entry.record as SettledTaskInfo), pending, unknown }
    })
  } catch (error) {
    core.transact(() => core.send({ type: 'lease.release', deliveryId }))
    throw error
  }
}

// A pruned entry keeps its last record.
const hasEnded = (entry: TaskEntry): boolean => entry.record.status !== 'running'

const isAsking = (entry: TaskEntry): boolean => entry.record.questions !== undefined

interface Wait {
  readonly isOver: () => boolean
  readonly found: readonly TaskEntry[]
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** Resolves when the tasks have ended, the time is up, the signal aborts or everything is disposed. */
function waitUntil(core: RegistryCore, wait: Wait): Promise<void> {
  const { isOver, found, timeoutMs, signal } = wait
  const waited = new Set(found)
  return new Promise((resolve) => {
    const end = (): void => {
      stop()
      resolve()
    }
    const timer = timeoutMs === undefined ? undefined : setLongTimeout(core.clock, end, timeoutMs)
    const subscription = core.told$.subscribe({
      next: (item) => {
        if (item.type === 'lease.ended' || !waited.has(item.entry)) return
        if ((item.type === 'questions' || isEnd(item.transition)) && isOver()) end()
      },
      complete: end,
    })
    const stop = (): void => {
      subscription.unsubscribe()
      clearLongTimeout(core.clock, timer)
      signal?.removeEventListener('abort', end)
    }
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** Resolves when nothing of the owner (of everyone) runs, is owed or is on its way, or the registry is disposed. */
export function waitUntilQuiet(core: RegistryCore, owner: string | undefined): Promise<void> {
  const isQuiet = (): boolean =>
    core.isDisposed || (['running', 'owed', 'leased'] as const).every((kind) => core.table.countOf(kind, owner) === 0)
  if (isQuiet()) return Promise.resolve()
  return new Promise((resolve) => {
    const subscription = core.idle$.subscribe({
      next: () => {
        if (!isQuiet()) return
        subscription.unsubscribe()
        resolve()
      },
      complete: resolve,
    })
  })
}
