/** What the ledger needs, and what it is asked for. */
import type { ChangeFeed } from './change-feed.js'
import type { QuestionRef } from './owed-questions.js'
import type { Settlement } from './records.js'
import type { OwedQuestion, TaskEntry } from './task-entry.js'

export interface LeaseRequest {
  /** The id of the delivery. No other open delivery may have it. A repeat has the id of the message that it repeats (`TaskEntry.repeatOf`). */
  readonly deliveryId: string
  /** Takes only entries of this owner. Default: of all owners. */
  readonly owner?: string
  /** Takes only the entries of these tasks. */
  readonly taskIds?: readonly string[]
  /** Refuses the lease while another exclusive lease of the same owner is open. */
  readonly isExclusive?: boolean
  /** Also claims those of the tasks that are active or leased: the lease takes them when their results become owed. */
  readonly isClaim?: boolean
  /** Also takes those of these questions that are owed. */
  readonly questions?: readonly QuestionRef[]
}

export interface LedgerOptions {
  readonly changes: ChangeFeed
  /** Whether the owner also receives a message about a cancelled task. */
  readonly notifyCancelled: boolean
  readonly find: (id: string) => TaskEntry | undefined
  /** Called when the result of an ended task is no longer owed. */
  readonly onCleared: (entry: TaskEntry) => void
  /** Called when the delivered result of a task is owed again. */
  readonly onRepeated?: (entry: TaskEntry) => void
  /** Returns the owner that receives the questions of a task. Default: the owner of the task. */
  readonly addresseeOf?: (entry: TaskEntry) => string
  /** Returns the end of a task's output for its record, if the record must contain it. */
  readonly tailOf?: (entry: TaskEntry, settlement: Settlement) => string | undefined
  /** Notified of the messages that carry results. Only set with a store. */
  readonly deliveries?: DeliveryObserver
}

/** Observes the messages that carry results and questions. */
export interface DeliveryObserver {
  onCarried(deliveryId: string, entry: TaskEntry, question?: OwedQuestion): void
  /** The delivery state of a task's questions has changed. */
  onAsked(entry: TaskEntry): void
  /** A message was accepted. `carried` has the entries in it; undefined for all entries of the lease. */
  onAccepted(deliveryId: string, carried?: ReadonlySet<TaskEntry>): void
  /** A message was not accepted. */
  onReleased(deliveryId: string): void
  /** The host itself has delivered the result of a task, without a lease. */
  onMarked(entry: TaskEntry): void
  /** `TaskEntry.repeatOf` has changed without a change of the record. */
  onParted(entry: TaskEntry): void
}
