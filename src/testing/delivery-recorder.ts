/** Records the delivery log of a live manager. */
import type { TaskTransition } from '../../machines/transitions.js'
import { isTerminal } from '../../machines/task-entry.js'
import { hasEnded } from '../../machines/task-status.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TriggerAgentTurn } from '../features/delivery/auto-trigger.js'
import { isThenable } from '../isolation/isolated-call.js'
import { systemClock, type Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { DeliveryLogEntry } from './delivery-log.js'
import type { DeliveryVerdict } from './delivery-accounts.js'
import { checkDeliveryLog, type DeliveryCheckOptions } from './delivery-verdict.js'

/** Whose deliveries are recorded: a manager, or the object that `createAgentTasks` returns. */
export type DeliverySource = AsyncTaskManager | { getAsyncTaskManager(): AsyncTaskManager }

/** Options of `recordDeliveryLog`. */
export interface DeliveryRecorderOptions {
  /** Called with each entry, for example to append `JSON.stringify(entry)` to a file. */
  readonly onEntry?: (entry: DeliveryLogEntry) => void
  /** Whether to keep the entries in memory. Default true. Pass false in a process that runs for long, because the list would grow without limit. */
  readonly keepEntries?: boolean
  /** The clock for the times of turns. Pass the clock of the manager. Default: the system clock. */
  readonly clock?: Clock
}

/** Records a delivery log. Made by `recordDeliveryLog`. */
export interface DeliveryRecorder {
  /** The entries so far, in order. Empty with `keepEntries: false`. */
  readonly entries: readonly DeliveryLogEntry[]
  /**
   * Wraps a `triggerAgentTurn`, so that the log shows when each turn started and whether the agent accepted it. Without this wrapper, the log shows only
   * what the manager marked as delivered.
   */
  wrapTurn(triggerAgentTurn: TriggerAgentTurn): TriggerAgentTurn
  /**
   * Checks the entries so far, as `checkDeliveryLog` does.
   * @throws INVALID_INPUT for an invalid option
   */
  check(options?: DeliveryCheckOptions): DeliveryVerdict
  /** The entries so far as text, with one JSON entry per line. */
  toString(): string
  /** Stops recording. */
  stop(): void
}

/**
 * Records every delivery of a manager from now on. Tasks that the manager already has are recorded in their present state. The times of the entries
 * never go back, even if the clock does.
 * @param source the manager, or the object that `createAgentTasks` returned
 * @param options where the entries go, and the clock
 * @returns the recorder, which has the entries and checks them
 * @example
 * const tasks = createAgentTasks({ subagents })
 * const recorder = recordDeliveryLog(tasks)
 * tasks.setupAsyncTaskAutoTrigger(isAgentBusy, recorder.wrapTurn(triggerAgentTurn))
 * // … and when the test is over:
 * expect(recorder.check()).toMatchObject({ isClean: true })
 */
export function recordDeliveryLog(source: DeliverySource, options: DeliveryRecorderOptions = {}): DeliveryRecorder {
  const { onEntry, keepEntries = true, clock = systemClock } = options
  const manager = 'getAsyncTaskManager' in source ? source.getAsyncTaskManager() : source
  const entries: DeliveryLogEntry[] = []
  let isStopped = false
  let latest = -Infinity
  const write = (entry: DeliveryLogEntry): void => {
    if (isStopped) return
    latest = Math.max(latest, entry.at)
    // The times must not go back, but someone may set the system clock back at any time.
    const dated = entry.at < latest ? { ...entry, at: latest } : entry
    if (keepEntries) entries.push(dated)
    onEntry?.(dated)
  }
  for (const entry of pastEntriesOf(manager)) write(entry)
  const subscription = manager.transitions$.subscribe((transition) => {
    for (const entry of entriesOf(transition)) write(entry)
  })

  return {
    entries,
    wrapTurn: (triggerAgentTurn) => (text, delivery) => {
      const { deliveryId, taskIds } = delivery
      const owner = manager.getTask(taskIds[0] ?? '')?.owner ?? 'main'
      write({ type: 'turn-started', at: clock.now(), owner, deliveryId, taskIds })
      const accept = (): void => write({ type: 'accepted', at: clock.now(), deliveryId, taskIds })
      const result = triggerAgentTurn(text, delivery)
      if (!isThenable(result)) {
        accept()
        return result
      }
      return result.then((value) => {
        accept()
        return value
      })
    },
    check: (checkOptions) => checkDeliveryLog(entries, checkOptions),
    toString: () => entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''),
    stop: () => {
      isStopped = true
      subscription.unsubscribe()
    },
  }
}

/** Creates the entries that lead to the current state of a manager's tasks, ordered by time. */
function pastEntriesOf(manager: AsyncTaskManager): DeliveryLogEntry[] {
  const entries: DeliveryLogEntry[] = []
  for (const record of manager.getAllTasks()) {
    const { id, delivery, launchedAt, owner } = record
    entries.push({ type: 'registered', at: launchedAt, taskId: id, owner })
    if (!isTerminal(record)) continue
    const { completedAt, notifiedAt = completedAt } = record
    entries.push({ type: 'settled', at: completedAt, taskId: id, status: record.status, owes: delivery !== 'none' })
    if (delivery === 'delivered') entries.push({ type: 'acknowledged', at: notifiedAt, taskIds: [id] })
  }
  return entries.sort((one, other) => one.at - other.at)
}

function entriesOf(transition: TaskTransition): DeliveryLogEntry[] {
  const { at, taskId, owner, record } = transition
  switch (transition.kind) {
    case 'status':
      if (transition.from === null) return [{ type: 'registered', at, taskId, owner }]
      if (!hasEnded(transition.to)) return []
      return [{ type: 'settled', at, taskId, status: transition.to, owes: record.delivery !== 'none' }]
    case 'owner':
      return [{ type: 'moved', at, taskId, owner }]
    case 'history':
      return [{ type: 'pruned', at, taskId }]
    case 'delivery':
      return entriesOfDelivery(transition, [taskId])
  }
}

function entriesOfDelivery(
  { from, to, at, deliveryId }: Extract<TaskTransition, { kind: 'delivery' }>,
  taskIds: readonly string[],
): DeliveryLogEntry[] {
  const known = deliveryId ?? 'unnamed'
  switch (to) {
    case 'leased': {
      const leased: DeliveryLogEntry = { type: 'leased', at, deliveryId: known, taskIds }
      // When a lease is released, its result may go straight to a caller that waits for the task.
      return from === 'leased' ? [{ type: 'returned', at, deliveryId: known, taskIds }, leased] : [leased]
    }
    case 'delivered':
      return [{ type: 'acknowledged', at, taskIds, ...omitUndefined({ deliveryId }) }]
    case 'owed':
      if (from === 'delivered') return [{ type: 'repeated', at, deliveryId: known, taskIds }]
      return from === 'leased' ? [{ type: 'returned', at, deliveryId: known, taskIds }] : []
    case 'none':
      return [{ type: 'dropped', at, taskIds }]
  }
}
