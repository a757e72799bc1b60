/** What a task needs to be registered, and to start. */
import type { LaunchTerms } from './record-fields.js'
import type { CommandFields, TaskSession } from './records.js'

/** The pool of slots that a task uses. `task`: for tasks of the host. `child`: for tasks launched by runs. `command`: for commands. */
export type SlotPool = 'task' | 'child' | 'command'

/** How often the runs of a subagent may start: at most `limit` times in any `perMs` milliseconds. */
export interface StartRate {
  /** The number of starts, an integer from 1 to 500. */
  readonly limit: number
  /** The period in ms. */
  readonly perMs: number
}

/** A slot of a concurrency key or of a subagent, which a task may need in addition to a slot of its pool. */
export interface NamedSlot {
  /** Whether the slot belongs to a `concurrencyKey`, or to a subagent with `maxConcurrent`. */
  readonly kind: 'key' | 'subagent'
  /** The concurrency key, or the name of the subagent. */
  readonly name: string
  /** How many tasks may hold such a slot at once. */
  readonly max: number
}

/** What a task needs in addition to a slot of its pool. */
export interface Requirements {
  /** The slots of the key and subagent of the task. The task takes all of them at once. */
  readonly slots: readonly NamedSlot[]
  /** How often runs of the subagent may start, with the name of the subagent. */
  readonly rate?: StartRate & { readonly name: string }
}

/** The conditions under which a task waits for a slot. */
export interface QueueTicket {
  /** The priority. Tasks with a higher priority start first. */
  readonly priority: number
  /** The size of the goal and params that are held for the task, in bytes. */
  readonly bytes: number
  /** When the priority began to rise, in ms on the monotonic clock that deadlines use. Default 0. */
  readonly since?: number
  /** What the task needs in addition to a slot of its pool. */
  readonly needs?: Requirements
}

export interface TaskAdmission {
  /** The id of the task. No kept task may have the same id. */
  readonly id: string
  readonly subagentName: string
  readonly goalPrompt: string
  /** The owner, to whom the result is delivered. */
  readonly owner: string
  /** The controller of the task. Aborting it cancels the task. */
  readonly abortController?: AbortController | undefined
  /** How long the run may take to stop after the deadline, in ms. */
  readonly graceMs: number
  /** The concurrency key in them is only shown: its limit is in the `needs` of the ticket. */
  readonly terms?: LaunchTerms | undefined
  /** Whether the caller waits for the task in the foreground. The task then takes no slot of its pool, unless it is a command. */
  readonly isForeground?: boolean | undefined
  /** Whether the task is a note, which takes no slot. */
  readonly isNote?: true | undefined
  /** Whether the runs save their progress. Time in which a durable run only waits does not count. */
  readonly isDurable?: boolean | undefined
  /** The pool whose slot the task needs. Default: `task`. */
  readonly pool?: SlotPool | undefined
  /** The id of the task whose run launches this task. */
  readonly parentId?: string | undefined
  /** How deep the task is nested below other tasks. */
  readonly depth?: number | undefined
  /** How the task waits if there is no slot. Without a ticket it is refused. */
  readonly ticket?: QueueTicket | undefined
  /** The ids of the tasks that must end before this task starts. */
  readonly after?: readonly string[] | undefined
  /**
   * The ids of those tasks of `after` that have not ended. While this list is set, even if it is empty, the task is held in the queue. The task then
   * needs a ticket.
   */
  readonly waitsFor?: readonly string[] | undefined
  readonly previous?: { readonly id: string; readonly session?: TaskSession } | undefined
  /** Set for a command. Absent for the run of a subagent. */
  readonly kind?: CommandFields['kind'] | undefined
  readonly command?: CommandFields['command'] | undefined
  /** What a store keeps about the run. Absent if the caller runs the task itself. */
  readonly run?: Readonly<Record<string, unknown>> | undefined
}
