/** Waits for tasks to end. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { isOutstanding, isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import type { WaitOptions, WaitResult } from '../engine/children.js'
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { openLease, type HoldLease } from './delivery/leases.js'
import type { Asking, QuestionAsker } from './questions/question-askers.js'
import { notes } from './notes.js'
import { taskWatchers } from './task-watchers.js'
import type { Persistence } from './recovery/persistence.js'
import type { TaskRegistry } from './registry.js'

/** Options of a wait whose result becomes a text for a model. */
export interface WordedWaitOptions extends WaitOptions {
  /**
   * Called with the ended and the active tasks, before the former are acknowledged and while their records cannot be pruned. Returns the tasks whose
   * text the result contains; the others are owed again. If it throws, the wait rejects and acknowledges nothing.
   */
  readonly onSettled?: (
    settled: readonly SettledTaskInfo[],
    pending: readonly AsyncTaskInfo[],
  ) => readonly SettledTaskInfo[]
  /**
   * Takes over the lease of the ended tasks, which are then not acknowledged at the end of the wait. The caller ends the lease when it knows whether
   * the result has arrived.
   */
  readonly hold?: HoldLease | undefined
  /** Whether the wait also ends when one of the tasks asks a question. */
  readonly endsOnQuestion?: boolean
  /** Whether the wait also ends when one of the tasks is in the background. */
  readonly endsInBackground?: boolean
  /** Whether the wait also ends when a note is owed to this owner, or to any owner. Default: no. */
  readonly endsOnNote?: { readonly owner: string | undefined } | undefined
  /** Asks a person the questions of the tasks. Meanwhile a question does not end the wait. */
  readonly asker?: QuestionAsker | undefined
}

const idsSchema = lazily(() => z.array(z.string()))
const optionsSchema = lazily(() =>
  strictObject({
    mode: z.enum(['all', 'any']).optional(),
    timeoutMs: z.number().min(0).optional(),
    signal: z.custom<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal').optional(),
    endsOnQuestion: z.boolean().default(false),
    endsInBackground: z.boolean().default(false),
    endsOnNote: z.custom<NonNullable<WordedWaitOptions['endsOnNote']>>((value) => typeof value === 'object').optional(),
    asker: z.custom<QuestionAsker>((value) => typeof value === 'object', 'an object').optional(),
    hold: z.custom<HoldLease>((value) => typeof value === 'function', 'a function').optional(),
    onSettled: z
      .custom<NonNullable<WordedWaitOptions['onSettled']>>((value) => typeof value === 'function', 'a function')
      .optional(),
  }),
)

/**
 * Waits until the tasks have ended. Each result is leased when its task ends, so that no reminder contains it. Returned results are acknowledged; an
 * aborted wait releases all of them.
 */
export async function waitForTasks(
  registry: TaskRegistry,
  taskIds: readonly string[],
  waitOptions: WordedWaitOptions,
  deliveryId: string,
): Promise<WaitResult> {
  const ids = [...new Set(parseInput(idsSchema(), taskIds, 'ids'))]
  const options = parseInput(optionsSchema(), waitOptions, 'options')
  const {
    mode = 'all',
    timeoutMs,
    signal,
    onSettled,
    endsOnQuestion,
    endsInBackground,
    endsOnNote,
    asker,
    hold,
  } = options
  signal?.throwIfAborted()
  const found = ids.map((id) => registry.history.get(id)).filter((entry): entry is TaskEntry => entry !== undefined)
  const unknown = ids.filter((id) => registry.history.get(id) === undefined)
  const hasNote = endsOnNote !== undefined && registry.use(notes).isOwed(endsOnNote.owner)
  openLease(registry, { deliveryId, taskIds: found.map(({ record }) => record.id), isClaim: true })
  const asking = asker?.begin((taskId) => {
    const entry = registry.history.get(taskId)
    if (entry !== undefined) registry.use(taskWatchers).changed(entry)
  })
  const isOver = overWhen(
    found,
    mode,
    (entry) =>
      (endsOnQuestion && isAsking(entry) && !isAsked(entry, asking)) ||
      (endsInBackground && entry.record.isForeground !== true),
  )
  try {
    // A subscriber may have aborted the signal when it was notified of the lease.
    if (!hasNote && !found.some(isOver) && found.length > 0 && !registry.isDisposed && signal?.aborted !== true) {
      await waitUntil(registry, { isOver, found, timeoutMs, signal, endsOnNote })
    }
    asking?.end()
    if (registry.persistence !== undefined) await endsStored(registry.persistence, found)
    // The signal may also have aborted after the last task ended and before this line.
    signal?.throwIfAborted()
    // Read and acknowledged in one batch, so that a task that ends meanwhile is either in the result or not acknowledged.
    return registry.batch(() => {
      const ended = found.filter(isEnded)
      const pending = found.filter((entry) => !isEnded(entry)).map((entry) => entry.record)
      const settled = ended.map((entry) => entry.record as SettledTaskInfo)
      const shown = new Set((onSettled?.(settled, pending) ?? settled).map(({ id }) => id))
      const carried = ended.filter(({ record }) => shown.has(record.id))
      const delivers = registry.persistence !== undefined && carried.some(isOutstanding)
      const acknowledge = (): void => {
        registry.send({ type: 'lease.acknowledge', deliveryId, carried: new Set(carried) })
        // The result also contains tasks that another message has leased. If that message is refused, they are not owed again.
        registry.send({ type: 'lease.acknowledge', deliveryId, late: carried })
      }
      if (hold === undefined) {
        acknowledge()
      } else {
        registry.send({ type: 'claims.drop', deliveryId })
        const release = (): void => registry.send({ type: 'lease.release', deliveryId })
        hold({ taskIds: carried.map(({ record }) => record.id), acknowledge, release })
      }
      const records = ended.map((entry) => entry.record as SettledTaskInfo)
      return { settled: records, pending, unknown, ...(delivers && { deliveryId }) }
    })
  } catch (error) {
    asking?.end()
    registry.send({ type: 'lease.release', deliveryId })
    throw error
  }
}

/** Waits until the ends, and the lease on them, are stored (promise K3). Further tasks may end meanwhile. */
async function endsStored(persistence: Persistence, found: readonly TaskEntry[]): Promise<void> {
  const isUnstored = (entry: TaskEntry): boolean => isEnded(entry) && persistence.isPending(entry)
  while (found.some(isUnstored)) await persistence.stored()
}

// A pruned entry keeps its last record.
const isEnded = (entry: TaskEntry): boolean => isTerminal(entry.record)

const isAsking = (entry: TaskEntry): boolean => entry.record.questions !== undefined

const isAsked = ({ record }: TaskEntry, asking: Asking | undefined): boolean => asking?.ask(record) === true

/**
 * Returns a check whether a wait is over, to be called after each change of one of its tasks. A wait for many tasks examines each of them once,
 * rather than all at each end (promise A10).
 */
function overWhen(
  found: readonly TaskEntry[],
  mode: 'all' | 'any',
  endsOn: (changed: TaskEntry) => boolean,
): (changed: TaskEntry) => boolean {
  let ended = 0
  const haveAllEnded = (): boolean => {
    for (let next = found[ended]; next !== undefined && isEnded(next); next = found[ended]) ended += 1
    return ended === found.length
  }
  return (changed) => endsOn(changed) || (mode === 'any' ? isEnded(changed) : haveAllEnded())
}

interface Wait {
  readonly isOver: (changed: TaskEntry) => boolean
  readonly found: readonly TaskEntry[]
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal | undefined
  readonly endsOnNote: WordedWaitOptions['endsOnNote']
}

/** Resolves when the tasks have ended, a note has arrived, the time is up, the signal aborts or everything is disposed. */
function waitUntil(registry: TaskRegistry, wait: Wait): Promise<void> {
  const { isOver, found, timeoutMs, signal, endsOnNote } = wait
  const all = registry.use(taskWatchers)
  return new Promise((resolve) => {
    const end = (): void => {
      for (const [entry, watcher] of watchers) all.remove(entry, watcher)
      clearLongTimeout(registry.clock, timer)
      signal?.removeEventListener('abort', end)
      stopNotes?.()
      resolve()
    }
    const watchers = new Map(
      found.map((entry) => {
        const onChange = (): void => {
          if (all.isClosed || isOver(entry)) end()
        }
        return [entry, onChange]
      }),
    )
    // First, because a signal may throw, and there is nothing to undo yet.
    signal?.addEventListener('abort', end, { once: true })
    const label = {
      name: `time limit of a wait for ${found.map(({ record }) => record.id).join(', ')}`,
      kind: 'deadline',
    } as const
    const timer = timeoutMs === undefined ? undefined : setLongTimeout(registry.clock, end, timeoutMs, label)
    for (const [entry, watcher] of watchers) all.add(entry, watcher)
    const stopNotes = endsOnNote && registry.use(notes).onNote(endsOnNote.owner, end)
  })
}
