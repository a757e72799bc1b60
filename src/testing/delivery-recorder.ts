/** Records the deliveries of a live manager, and what its host says of them. */
import type { TaskTransition } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TriggerAgentTurn } from '../async-tasks/auto-trigger.js'
import { systemClock, type Clock } from '../clock.js'
import type { DeliveryLogEntry } from './delivery-log.js'
import { checkDeliveryLedger, type DeliveryCheckOptions, type DeliveryVerdict } from './delivery-verdict.js'

/** What `createAgentTasks` gives, or a manager. */
export type RecordedTasks = AsyncTaskManager | { getAsyncTaskManager(): AsyncTaskManager }

/** How to record. */
export interface RecorderOptions {
  /** Called with each entry: `appendFileSync('deliveries.jsonl', JSON.stringify(entry) + '\n')`. Default: nothing. */
  readonly onEntry?: (entry: DeliveryLogEntry) => void
  /** Keep the entries in memory. Default true; false for a process that runs for long. */
  readonly keepEntries?: boolean
  /** Dates what the host says. Default: the platform's clock; give the manager's. */
  readonly clock?: Clock
}

/** A log that is being written. */
export interface DeliveryRecorder {
  /** What was recorded so far, in order. */
  readonly entries: readonly DeliveryLogEntry[]
  /**
   * A `triggerAgentTurn` like the given one, whose turns are recorded: that they were started, and whether the agent accepted
   * them. Without it the log knows only what the ledger believes.
   */
  wrapTurn(triggerAgentTurn: TriggerAgentTurn): TriggerAgentTurn
  /** Judges what was recorded so far. */
  check(options?: DeliveryCheckOptions): DeliveryVerdict
  /** The log as text, one entry a line. */
  toString(): string
  /** Records nothing more. */
  stop(): void
}

/**
 * Records every delivery of a manager from now on. Tasks that it holds already are recorded as they stand. The times of the
 * entries never go back, whatever the clock does.
 * @example
 * const tasks = createAgentTasks({ subagents })
 * const ledger = recordDeliveryLedger(tasks)
 * tasks.setupAsyncTaskAutoTrigger(isAgentBusy, ledger.wrapTurn(triggerAgentTurn))
 * // … and when all is quiet:
 * expect(ledger.check()).toMatchObject({ isClean: true })
 */
export function recordDeliveryLedger(tasks: RecordedTasks, options: RecorderOptions = {}): DeliveryRecorder {
  const { onEntry, keepEntries = true, clock = systemClock } = options
  const manager = 'getAsyncTaskManager' in tasks ? tasks.getAsyncTaskManager() : tasks
  const entries: DeliveryLogEntry[] = []
  let isStopped = false
  let latest = -Infinity
  const write = (entry: DeliveryLogEntry): void => {
    if (isStopped) return
    latest = Math.max(latest, entry.at)
    // The platform's clock may be set back a little at any moment; what was written later happened later.
    const dated = entry.at < latest ? { ...entry, at: latest } : entry
    if (keepEntries) entries.push(dated)
    onEntry?.(dated)
  }
  for (const entry of openingOf(manager)) write(entry)
  const subscription = manager.transitions$.subscribe((transition) => {
    for (const entry of entriesOf(transition)) write(entry)
  })

  return {
    entries,
    wrapTurn: (triggerAgentTurn) => (text, delivery) => {
      const { deliveryId, taskIds } = delivery
      const owner = manager.getTask(taskIds[0] ?? '')?.owner ?? 'main'
      write({ type: 'woken', at: clock.now(), owner, deliveryId, taskIds })
      const accept = (): void => write({ type: 'told', at: clock.now(), deliveryId, taskIds })
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
    check: (checkOptions) => checkDeliveryLedger(entries, checkOptions),
    toString: () => entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''),
    stop: () => {
      isStopped = true
      subscription.unsubscribe()
    },
  }
}

/** What a manager holds already, as the entries of its past that matter, in the order of their times. */
function openingOf(manager: AsyncTaskManager): DeliveryLogEntry[] {
  const entries: DeliveryLogEntry[] = []
  for (const record of manager.getAllTasks()) {
    const { id, delivery, launchedAt, owner } = record
    entries.push({ type: 'registered', at: launchedAt, taskId: id, owner })
    if (record.status === 'running') continue
    const { completedAt, notifiedAt = completedAt } = record
    entries.push({ type: 'settled', at: completedAt, taskId: id, status: record.status, owes: delivery !== 'none' })
    if (delivery === 'delivered') entries.push({ type: 'acknowledged', at: notifiedAt, taskIds: [id] })
  }
  return entries.sort((one, other) => one.at - other.at)
}

/** What a change means for the log. */
function entriesOf(transition: TaskTransition): DeliveryLogEntry[] {
  const { at, taskId, owner, record } = transition
  const taskIds = [taskId]
  switch (transition.kind) {
    case 'status':
      if (transition.to === 'running') return [{ type: 'registered', at, taskId, owner }]
      return [{ type: 'settled', at, taskId, status: transition.to, owes: record.delivery !== 'none' }]
    case 'owner':
      return [{ type: 'moved', at, taskId, owner }]
    case 'history':
      return [{ type: 'pruned', at, taskId }]
    case 'delivery':
      return entriesOfDelivery(transition, taskIds)
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
      // What a message gives back may go to a wait at once.
      return from === 'leased' ? [{ type: 'returned', at, deliveryId: known, taskIds }, leased] : [leased]
    }
    case 'delivered':
      return [{ type: 'acknowledged', at, taskIds, ...(deliveryId !== undefined && { deliveryId }) }]
    case 'owed':
      return from === 'leased' ? [{ type: 'returned', at, deliveryId: known, taskIds }] : []
    case 'none':
      return [{ type: 'dropped', at, taskIds }]
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
