/**
 * The port of durability: keeps tasks and their undelivered results, so that they survive the process. `sqliteStore` and
 * `memoryStore` implement it; `storeContract` of `agent-tasks/testing` checks your own implementation.
 */
import type { QuestionRef } from '../../machines/owed-questions.js'
import type { DeliveryStatus } from '../../machines/records.js'
import type { AsyncTaskStatus } from '../../machines/task-status.js'
import type { TaskHistory } from './history/task-history.js'

/** A JSON object. */
export type StoredJson = Readonly<Record<string, unknown>>

/** A background task. */
export interface StoredTask {
  /** Unique among the stored tasks. */
  readonly id: string
  /** The owner that receives its end. */
  readonly owner: string
  /** Its status. */
  readonly status: AsyncTaskStatus
  /** The state of the message about its end. */
  readonly delivery: DeliveryStatus
  /** The number of its run; 1 for the first. */
  readonly attempt: number
  /** The sequence number of its last change. */
  readonly seq: number
  /** When it was launched, in ms since the epoch. */
  readonly launchedAt: number
  /** When it ended, in ms since the epoch. */
  readonly completedAt?: number
  /** Its deadline, in ms since the epoch. */
  readonly deadlineAt?: number
  /** The record of the task. */
  readonly record: StoredJson
  /** The data that a repeated run needs, and that finds its program. */
  readonly run?: StoredJson
}

/** A message with results. It is stored before it is sent, and removed when its owner has confirmed or returned it. */
export interface StoredDelivery {
  /** The delivery id, which is never reused. */
  readonly id: string
  /** The owner that receives it. */
  readonly owner: string
  /** `sent`: its arrival is unknown. `accepted`: the host has accepted it, but not confirmed it yet. */
  readonly state: 'sent' | 'accepted'
  /** When it was sent, in ms since the epoch. */
  readonly at: number
  /** The tasks whose results it carries. */
  readonly taskIds: readonly string[]
  /** The questions of durable tasks in it; absent without any. */
  readonly questions?: readonly QuestionRef[]
}

/** A command task. */
export interface StoredCommandTask {
  /** Unique among the stored command tasks. */
  readonly id: string
  /** The instance that runs its commands. */
  readonly instanceId: string
  /** Its status. */
  readonly status: string
  /** Its place in the order of submission. */
  readonly seq: number
  /** When it was submitted, in ms since the epoch. */
  readonly createdAt: number
  /** When it ended, in ms since the epoch. */
  readonly completedAt?: number
  /** The record of the task. The outcomes of its commands are in separate rows. */
  readonly record: StoredJson
  /** The request that submitted it, for repeated requests with the same idempotency key. */
  readonly submission?: StoredJson
}

/** A command of a command task that has ended. */
export interface StoredCommand {
  /** Unique among the stored commands. */
  readonly id: string
  /** The id of its task. */
  readonly taskId: string
  /** Its place among the commands of its task, from 0. */
  readonly index: number
  /** Its status, its times, and its result or error. */
  readonly outcome: StoredJson
}

/** A remote worker that may connect again. */
export interface StoredInstance {
  /** The id under which it registered. */
  readonly id: string
  /** The SHA-256 of its secret, in hexadecimal. */
  readonly secretSha256: string
  /** The data that it registered with. */
  readonly registration: StoredJson
}

/** The state of a feature besides tasks, such as a schedule. */
export interface StoredFeatureState {
  /** Unique among all features; it begins with the name of the feature. */
  readonly id: string
  /** The name of the feature. */
  readonly feature: string
  /** Its data. */
  readonly data: StoredJson
}

/** The rows of a store, by table. */
export interface StoreTables {
  /** Background tasks. */
  readonly tasks: StoredTask
  /** Unconfirmed messages. */
  readonly deliveries: StoredDelivery
  /** Command tasks. */
  readonly commandTasks: StoredCommandTask
  /** The commands of command tasks that have ended. */
  readonly commands: StoredCommand
  /** Remote workers. */
  readonly instances: StoredInstance
  /** The state of features. */
  readonly featureStates: StoredFeatureState
}

/** The name of a table. */
export type StoreTable = keyof StoreTables

/** A change of one row. `put` adds or replaces a row; removing an id that is not stored is a no-op. */
export type StoreChange = {
  readonly [Table in StoreTable]:
    { readonly table: Table; readonly put: StoreTables[Table] } | { readonly table: Table; readonly remove: string }
}[StoreTable]

/** The whole content of a store. Tasks and command tasks are in the order of `seq`. */
export type StoreContents = { readonly [Table in StoreTable]: readonly StoreTables[Table][] }

/** Keeps tasks on a disk, or elsewhere. */
export interface Store {
  /** Its name in errors, such as the path of its file. Default: "the store". */
  readonly name?: string | undefined
  /** A folder for the files of `survivesHost` programs; undefined without one. */
  readonly directory?: string | undefined
  /**
   * Takes ownership of the store and reads it. A store has one owner at a time, until `close` or the end of the process.
   * @throws StoreInUseError while another process owns it; StoreError if it cannot be read. It is left unchanged then
   */
  open(): StoreContents
  /**
   * Writes all changes in order, or no change at all. Resolves when they are durable. A user of a store calls it again after it has settled; two
   * users may call it at the same time.
   * @throws StoreError: it rejects only when no change was written. If one row is the cause, because JSON or the store cannot hold it, `row` names it, and the
   * manager writes the rest again with a reduced row
   */
  write(changes: readonly StoreChange[]): Promise<void>
  /** Aborts when the store is lost for good, for example to another owner; its reason is the StoreError. Absent for stores that cannot detect it. */
  readonly lost?: AbortSignal | undefined
  /** The tasks that a manager no longer keeps. Absent without a history. */
  readonly history?: TaskHistory | undefined
  /** Ends the ownership, at the latest when it resolves. Closing again is a no-op. */
  close(): void | Promise<void>
}

/** A store in this process or on its disk. Its ownership has ended when `close` returns. */
export interface LocalStore extends Store {
  close(): void
}

/** A store in a file. Changes are durable when a write returns. */
export interface FileStore extends LocalStore {
  /** Writes as `write` does. @throws what `write` rejects with */
  writeNow(changes: readonly StoreChange[]): void
}

/** The names of all tables. */
export const STORE_TABLES: readonly StoreTable[] = [
  'tasks',
  'deliveries',
  'commandTasks',
  'commands',
  'instances',
  'featureStates',
]
