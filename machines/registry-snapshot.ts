/** What can be seen of the registry: its phase and its counts. */
import type { Snapshot } from 'xstate'

/** The state of the registry: `full` when no slot is free, `draining` when more runs than the maximum allows. */
export type RegistryPhase = 'available' | 'full' | 'draining' | 'disposed'

/** A frozen snapshot of the registry's counts. */
export type RegistrySnapshot = Snapshot<undefined> & {
  readonly phase: RegistryPhase
  /** How many tasks may run at once; -1 for no limit. */
  readonly max: number
  /** Tasks that run. */
  readonly running: number
  /** Slots in use, by tasks and by runs that outlive theirs. */
  readonly slots: number
  /** Reservations that were live at this snapshot; their expiry makes no new one. */
  readonly reservations: number
  /** Ended tasks that are owed and in no lease. */
  readonly owed: number
  /** Ended tasks in a lease. */
  readonly leased: number
  /** Records kept, running and ended. */
  readonly retained: number
  /** The number of the latest change. */
  readonly seq: number
  /** When the next deadline or grace period ends, in ms on the clock of `elapsed`; undefined when none is set. */
  readonly nextDeadlineAt: number | undefined
  /** The id of the task whose deadline that is; undefined for a reservation. */
  readonly nextDeadlineOf: string | undefined
  /** When the next back-off before a retry ends, on the same clock; undefined when no task is in one. */
  readonly nextRetryAt: number | undefined
  /** The id of the task that is retried then. */
  readonly nextRetryOf: string | undefined
}
