/** Waits for tasks to end. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { isOutstanding, isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import type { WaitOptions, WaitResult } from '../engine/children.js'
import { clearLongTimeout, setLongTimeout } from '../system/clock.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { openLease, releaseOf, type HoldLease } from '../features/delivery/leases.js'
import type { Asking, QuestionAsker } from '../features/questions/question-askers.js'
import { notes } from '../features/notes/notes.js'
import { taskWatchers } from './task-watchers.js'
import type { Persistence } from './recovery/persistence.js'
import type { TaskRegistry } from './registry.js'

/** The options of a wait whose result becomes a text for a model. */
export interface WordedWaitOptions extends WaitOptions {
  /**
   * Called at the end of the wait with the ended and the active tasks. The results are not acknowledged yet, and the records cannot be pruned. Returns
   * those ended tasks whose text the model receives. The others are owed again. If it throws, the wait rejects and acknowledges nothing.
   */
  readonly onSettled?: (
    settled: readonly SettledTaskInfo[],
    pending: readonly AsyncTaskInfo[],
  ) => readonly SettledTaskInfo[]
  /**
   * Takes over the lease on the ended tasks. The end of the wait does not acknowledge them then. The receiver ends the lease when it knows whether the
   * result has arrived.
   */
  readonly hold?: HoldLease | undefined
  /** Whether the wait also ends when one of the tasks asks a question. */
  readonly endsOnQuestion?: boolean
  /** Whether the wait also ends when one of the tasks is in the background. */
  readonly endsInBackground?: boolean
  /** Whether the wait also ends when a note is owed to this owner; with `owner: undefined`, to any owner. Default: no. */
  readonly endsOnNote?: { readonly owner: string | undefined } | undefined
  /** Asks a person the questions of the tasks. A question that the person is asked does not end the wait. */
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
 * Waits until the tasks have ended. Each task is leased as soon as it ends, so that no reminder contains its result. At the end of the wait, the
 * returned results are acknowledged. An aborted wait releases all leases.
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
    // The signal is checked here, too: a subscriber that was notified of the lease may have aborted it.
    registry.persistence?.throwIfLost()
    // Every task is examined, so that the questions of all of them are asked.
    const areOver = found.filter(isOver).length > 0
    if (!hasNote && !areOver && found.length > 0 && !registry.isDisposed && signal?.aborted !== true) {
      await waitUntil(registry, { isOver, found, timeoutMs, signal, endsOnNote })
      registry.persistence?.throwIfLost()
    }
    asking?.end()
    if (registry.persistence !== undefined && !registry.isDisposed) await endsStored(registry.persistence, found)
    // The signal may have aborted during the last `await`.
    signal?.throwIfAborted()
    // One batch reads the records and acknowledges them. Otherwise a task that ends in between would be acknowledged without being in the result.
    return registry.batch(() => {
      // A disposed registry acknowledges nothing, and with a store the next process delivers what is owed. So it is not returned here.
      const isKept = (entry: TaskEntry): boolean =>
        registry.isDisposed && registry.persistence !== undefined && isOutstanding(entry)
      const isTaken = (entry: TaskEntry): boolean => isEnded(entry) && !isKept(entry)
      const ended = found.filter(isTaken)
      const pending = found.filter((entry) => !isTaken(entry)).map((entry) => entry.record)
      const settled = ended.map((entry) => entry.record as SettledTaskInfo)
      const shown = new Set((onSettled?.(settled, pending) ?? settled).map(({ id }) => id))
      const carried = ended.filter(({ record }) => shown.has(record.id))
      const delivers = carried.some(isOutstanding)
      const acknowledge = (): void => {
        registry.send({ type: 'lease.acknowledge', deliveryId, carried: new Set(carried) })
        // The result may also contain tasks that another message carries. They are delivered now, even if that message is refused later.
        registry.send({ type: 'lease.acknowledge', deliveryId, late: carried })
      }
      if (hold === undefined) {
        acknowledge()
      } else {
        registry.send({ type: 'claims.drop', deliveryId })
        const release = releaseOf(registry, registry.ledger.lease(deliveryId))
        const taskIds = carried.map(({ record }) => record.id)
        hold({ taskIds, acknowledge, release, ...(delivers && { deliveryId }) })
      }
      const records = ended.map((entry) => entry.record as SettledTaskInfo)
      const isNamed = delivers && registry.persistence !== undefined
      return { settled: records, pending, unknown, ...(isNamed && { deliveryId }) }
    })
  } catch (error) {
    asking?.end()
    registry.send({ type: 'lease.release', deliveryId })
    throw error
  }
}

/** Waits until the ends of the tasks and the lease on them are stored (promise K3). More tasks may end during that time. */
async function endsStored(persistence: Persistence, found: readonly TaskEntry[]): Promise<void> {
  const isUnstored = (entry: TaskEntry): boolean => isEnded(entry) && persistence.isPending(entry)
  while (found.some(isUnstored)) await persistence.stored()
}

// Also works for a pruned task, because its entry keeps the last record.
const isEnded = (entry: TaskEntry): boolean => isTerminal(entry.record)

const isAsking = (entry: TaskEntry): boolean => entry.record.questions !== undefined

const isAsked = ({ record }: TaskEntry, asking: Asking | undefined): boolean => asking?.ask(record) === true

/**
 * Returns a function that says whether a wait is over. Call it after each change of one of the tasks. In total it examines each task only once, not
 * all tasks at each end, so that waits for many tasks stay cheap (promise A10).
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

/** Resolves when the wait is over, a note has arrived, the time limit has passed, the signal aborts, or the registry is disposed. */
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
    // Done before everything else: the signal may throw, and at this point nothing has to be undone.
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
