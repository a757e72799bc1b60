/** Waits for tasks to end, and for an owner to have no task that runs or is owed. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import { parseInput } from '../protocol/parse.js'
import type { HoldLease } from './leases.js'
import { isEnd, type TaskRegistry } from './registry.js'

/** Options of `waitFor`. */
export interface WaitOptions {
  /** `all` (default) waits for the last of them, `any` for the first. */
  readonly mode?: 'all' | 'any'
  /** The maximum wait in ms; none when absent. */
  readonly timeoutMs?: number
  /** Ends the wait early: the promise rejects with the signal's reason, and nothing is acknowledged. */
  readonly signal?: AbortSignal
}

/** Options of a wait whose result becomes a text for a model. */
export interface WordedWaitOptions extends WaitOptions {
  /**
   * Called with the tasks that have ended, just before they are acknowledged and while their records cannot be pruned. If it throws,
   * the wait rejects and nothing is acknowledged.
   */
  readonly onSettled?: (settled: readonly SettledTaskInfo[]) => void
  /**
   * Takes the lease on what has ended, instead of its acknowledgement at the end of the wait: the caller ends it when it knows whether
   * the result has arrived.
   */
  readonly hold?: HoldLease | undefined
  /** The wait also ends when one of the tasks asks a question, which the caller may have to answer. */
  readonly endsOnQuestion?: boolean
}

/** The tasks at the end of a wait. */
export interface WaitResult {
  /** Named tasks that had ended. */
  readonly settled: readonly SettledTaskInfo[]
  /** Named tasks that still ran. */
  readonly pending: readonly AsyncTaskInfo[]
  /** Named ids that no retained task has. */
  readonly unknown: readonly string[]
}

const idsSchema = lazily(() => z.array(z.string()))
const optionsSchema = lazily(() =>
  z.object({
    mode: z.enum(['all', 'any']).optional(),
    timeoutMs: z.number().min(0).optional(),
    signal: z.custom<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal').optional(),
    endsOnQuestion: z.boolean().default(false),
    hold: z.custom<HoldLease>((value) => typeof value === 'function', 'a function').optional(),
    onSettled: z
      .custom<NonNullable<WordedWaitOptions['onSettled']>>((value) => typeof value === 'function', 'a function')
      .optional(),
  }),
)

/**
 * Waits until the tasks have ended. Each end is leased as it comes, so that no reminder carries it meanwhile; what is returned is
 * acknowledged, and an aborted wait releases everything.
 */
export async function waitForTasks(
  registry: TaskRegistry,
  taskIds: readonly string[],
  waitOptions: WordedWaitOptions,
  deliveryId: string,
): Promise<WaitResult> {
  const ids = [...new Set(parseInput(idsSchema(), taskIds, 'ids'))]
  const options = parseInput(optionsSchema(), waitOptions, 'options')
  const { mode = 'all', timeoutMs, signal, onSettled, endsOnQuestion, hold } = options
  signal?.throwIfAborted()
  const found = ids.map((id) => registry.history.get(id)).filter((entry): entry is TaskEntry => entry !== undefined)
  const unknown = ids.filter((id) => registry.history.get(id) === undefined)
  registry.takeLease({ deliveryId, taskIds: found.map(({ record }) => record.id), isClaim: true })
  const isOver = (): boolean =>
    (endsOnQuestion && found.some(isAsking)) ||
    (mode === 'all' || found.length === 0 ? found.every(hasEnded) : found.some(hasEnded))
  try {
    // A subscriber may have aborted the signal when it was notified of the lease.
    if (!isOver() && !registry.isDisposed && signal?.aborted !== true) {
      await waitUntil(registry, { isOver, found, timeoutMs, signal })
    }
    // The signal may also have aborted after the last of them ended and before this resumed.
    signal?.throwIfAborted()
    // Read and acknowledged in one batch: a task that ended meanwhile is in the result, or is not acknowledged.
    return registry.batch(() => {
      const ended = found.filter(hasEnded)
      const pending = found.filter((entry) => !hasEnded(entry)).map((entry) => entry.record)
      onSettled?.(ended.map((entry) => entry.record as SettledTaskInfo))
      const acknowledge = (): void => {
        registry.send({ type: 'lease.acknowledge', deliveryId })
        // The result has them also where another message holds the lease: if that one is refused, they are not owed again.
        registry.send({ type: 'lease.acknowledge', deliveryId, late: ended })
      }
      if (hold === undefined) acknowledge()
      else {
        registry.send({ type: 'claims.drop', deliveryId })
        const release = (): void => registry.send({ type: 'lease.release', deliveryId })
        hold({ taskIds: ended.map(({ record }) => record.id), acknowledge, release })
      }
      return { settled: ended.map((entry) => entry.record as SettledTaskInfo), pending, unknown }
    })
  } catch (error) {
    registry.send({ type: 'lease.release', deliveryId })
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
function waitUntil(registry: TaskRegistry, wait: Wait): Promise<void> {
  const { isOver, found, timeoutMs, signal } = wait
  const waited = new Set(found)
  return new Promise((resolve) => {
    const end = (): void => {
      stop()
      resolve()
    }
    const timer = timeoutMs === undefined ? undefined : setLongTimeout(registry.clock, end, timeoutMs)
    const subscription = registry.notifications$.subscribe({
      next: (item) => {
        if (item.type === 'lease.ended' || !waited.has(item.entry)) return
        if ((item.type === 'questions' || isEnd(item.transition)) && isOver()) end()
      },
      complete: end,
    })
    const stop = (): void => {
      subscription.unsubscribe()
      clearLongTimeout(registry.clock, timer)
      signal?.removeEventListener('abort', end)
    }
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** Resolves when no task of the owner (of any owner) runs, is owed or is leased, or the registry is disposed. */
export function waitUntilIdle(registry: TaskRegistry, owner: string | undefined): Promise<void> {
  const isIdle = (): boolean =>
    registry.isDisposed ||
    (['running', 'owed', 'leased'] as const).every((kind) => registry.ledger.countOf(kind, owner) === 0)
  if (isIdle()) return Promise.resolve()
  return new Promise((resolve) => {
    const subscription = registry.drained$.subscribe({
      next: () => {
        if (!isIdle()) return
        subscription.unsubscribe()
        resolve()
      },
      complete: resolve,
    })
  })
}
