/** The visible state of the registry: its phase and counts. */
import type { Snapshot } from 'xstate'

/** The state of the registry. `full`: no slot is free. `draining`: more tasks run than the maximum allows. */
export type RegistryPhase = 'available' | 'full' | 'draining' | 'disposed'

export type RegistrySnapshot = Snapshot<undefined> & {
  readonly phase: RegistryPhase
  /** How many tasks may run at once; -1 for no limit. */
  readonly max: number
  /** Tasks that run. */
  readonly running: number
  /** Slots in use, including those of runs that outlive their tasks. */
  readonly slots: number
  /** Reservations at the time of this snapshot. Their expiry does not create a new snapshot. */
  readonly reservations: number
  /** Ended tasks that are owed and not leased. */
  readonly owed: number
  /** Ended tasks in a lease. */
  readonly leased: number
  /** Records kept, running and ended. */
  readonly retained: number
  /** The number of the latest change. */
  readonly seq: number
  /** The time of the next deadline or end of a grace period, in ms of the monotonic clock; undefined if there is none. */
  readonly nextDeadlineAt: number | undefined
  /** The id of the task with that deadline; undefined for a reservation. */
  readonly nextDeadlineOf: string | undefined
  /** The end of the next retry back-off, on the same clock; undefined if there is none. */
  readonly nextRetryAt: number | undefined
  /** The id of the task that will be retried. */
  readonly nextRetryOf: string | undefined
}
