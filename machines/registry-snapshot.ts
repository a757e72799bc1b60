/** What an observer of the registry sees: its phase and counts. */
import type { Snapshot } from 'xstate'

/** The phase of the registry. `full`: no slot is free. `draining`: more tasks run than the maximum allows, because the maximum was lowered. */
export type RegistryPhase = 'available' | 'full' | 'draining' | 'disposed'

export type RegistrySnapshot = Snapshot<undefined> & {
  readonly phase: RegistryPhase
  /** How many tasks may run at once; -1 for no limit. */
  readonly max: number
  readonly running: number
  /** The number of slots in use, including those of runs that have not stopped although their tasks have ended. */
  readonly slots: number
  /** The number of reservations at the time of this snapshot. When a reservation expires, no new snapshot is created. */
  readonly reservations: number
  /** The number of ended tasks whose results are owed and in no message. */
  readonly owed: number
  /** The number of ended tasks whose results are in a message that is not accepted yet. */
  readonly leased: number
  /** The number of kept records, of active and ended tasks. */
  readonly retained: number
  /** The number of the latest change. */
  readonly seq: number
  /** The time of the next deadline, end of a grace period or expiry of a reservation, in ms of the monotonic clock; undefined if there is none. */
  readonly nextDeadlineAt: number | undefined
  /** The id of the task to which that time belongs; undefined for a reservation. */
  readonly nextDeadlineOf: string | undefined
  /** When the next back-off of a retry ends, in ms of the monotonic clock; undefined if there is none. */
  readonly nextRetryAt: number | undefined
  /** The id of the task whose back-off ends then. */
  readonly nextRetryOf: string | undefined
}
