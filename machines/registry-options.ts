/** What a registry is made of. */
import type { ActiveTimes } from './active-times.js'
import type { AsyncTaskMachine } from './async-task.js'
import type { History } from './history.js'
import type { ChangeFeed } from './change-feed.js'
import type { Ledger } from './ledger.js'
import type { Families } from './parts/families.js'
import type { OnWaiting, Pauses } from './parts/pauses.js'
import type { TaskFailure } from './records.js'
import type { StartRate, TaskAdmission } from './task-admission.js'
import type { WaitEvent } from './registry-events.js'
import type { SlotPools } from './slots.js'
import type { Usage } from './usage.js'
import type { TaskEntry } from './task-entry.js'
import type { TaskLimits } from './task-limits.js'

/** What a registry is made of, and the calls that it makes. The objects are changed in place, but only in its transitions. */
export interface RegistryOptions {
  readonly slots: SlotPools
  readonly limits: TaskLimits
  readonly ledger: Ledger
  readonly history: History
  readonly families: Families
  readonly pauses: Pauses
  /** How long durable tasks have worked. */
  readonly active: ActiveTimes
  readonly changes: ChangeFeed
  readonly task: AsyncTaskMachine
  /** Returns the time of the clock for deadlines, in ms. This clock is never set back. */
  readonly elapsed: () => number
  /** Called when a task is registered. */
  readonly onLaunched?: (entry: TaskEntry, admission: TaskAdmission) => void
  /** The error of a task that has waited too long for a slot. */
  readonly expiry: TaskFailure
  /** Called when a task has used something, and when a task with earlier usage is restored (`isEarlier`). */
  readonly onSpent?: (owner: string, amount: Usage, isEarlier?: boolean) => void
  /** Called when a task ends. Its run may still be going on. `apply` changes tasks that wait for it, in the same transition. */
  readonly onEnded?: (entry: TaskEntry, apply: (event: WaitEvent) => void) => void
  readonly onWaiting?: OnWaiting
  /** Called when a record has changed without a change of state, for example by a question. Subscribers get no event of it; the store uses this call. */
  readonly onNoted?: (entry: TaskEntry) => void
  /** Whether `entry` cannot continue before `other` has ended. */
  readonly waitsFor?: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Called when a start was counted. `names` are the subagents whose counted starts have changed. */
  readonly onCounted?: (rate: StartRate, names: readonly string[]) => void
  readonly describeError: (error: unknown) => TaskFailure
}
