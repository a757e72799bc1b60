/**
 * The port of durability: where tasks, and what is owed for them, are kept so that they survive the process. `sqliteStore` and
 * `memoryStore` implement it; `storeContract` of `agent-tasks/testing` checks an implementation of your own.
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
  /** To whom its end is delivered. */
  readonly owner: string
  /** Its status. */
  readonly status: AsyncTaskStatus
  /** The state of the message about its end. */
  readonly delivery: DeliveryStatus
  /** Which run of it this is: 1 for the first. */
  readonly attempt: number
  /** The sequence number of its last change. */
  readonly seq: number
  /** When it was launched, in ms since the epoch. */
  readonly launchedAt: number
  /** When it ended, in ms since the epoch. */
  readonly completedAt?: number
  /** When its time limit passes, in ms since the epoch. */
  readonly deadlineAt?: number
  /** The record of the task. */
  readonly record: StoredJson
  /** What is needed to run it again while it runs, and to find its program. */
  readonly run?: StoredJson
}

/** A message with results. It is stored before it is sent, and removed when its owner has confirmed it or given it back. */
export interface StoredDelivery {
  /** The delivery id: never used for another message. */
  readonly id: string
  /** To whom the message is sent. */
  readonly owner: string
  /** `sent`: nobody knows whether it arrived. `accepted`: the host accepted it, and has not confirmed it yet. */
  readonly state: 'sent' | 'accepted'
  /** When it was sent, in ms since the epoch. */
  readonly at: number
  /** The tasks whose results it carries. */
  readonly taskIds: readonly string[]
  /** The questions of durable tasks that it asks; absent when there are none. */
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
  /** The record of the task; what became of its commands is in rows of their own. */
  readonly record: StoredJson
  /** The request that submitted it, for a caller who repeats it. */
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
  /** How it ended: its status, its times, and its result or error. */
  readonly outcome: StoredJson
}

/** A remote worker that may connect again. */
export interface StoredInstance {
  /** The id under which it registered. */
  readonly id: string
  /** The SHA-256 of its secret, in hexadecimal. */
  readonly secretSha256: string
  /** What it said about itself. */
  readonly registration: StoredJson
}

/** What a feature keeps besides tasks, such as a schedule. */
export interface StoredFeatureState {
  /** Unique among all of them; it begins with the name of the feature. */
  readonly id: string
  /** The name of the feature. */
  readonly feature: string
  /** What it keeps. */
  readonly data: StoredJson
}

/** The rows of a store, by table. */
export interface StoreTables {
  /** Background tasks. */
  readonly tasks: StoredTask
  /** Messages that are not confirmed. */
  readonly deliveries: StoredDelivery
  /** Command tasks. */
  readonly commandTasks: StoredCommandTask
  /** The commands of command tasks that have ended. */
  readonly commands: StoredCommand
  /** Remote workers. */
  readonly instances: StoredInstance
  /** What features keep besides tasks. */
  readonly featureStates: StoredFeatureState
}

/** The name of a table. */
export type StoreTable = keyof StoreTables

/** A change of one row. `put` replaces the row of the same id, or adds it; removing an id that is not stored does nothing. */
export type StoreChange = {
  readonly [Table in StoreTable]:
    { readonly table: Table; readonly put: StoreTables[Table] } | { readonly table: Table; readonly remove: string }
}[StoreTable]

/** Everything that is stored; tasks and command tasks are in the order of `seq`. */
export type StoreContents = { readonly [Table in StoreTable]: readonly StoreTables[Table][] }

/** Keeps tasks on a disk, or elsewhere. */
export interface Store {
  /** What errors call it, such as the path of its file. Default: "the store". */
  readonly name?: string | undefined
  /** A folder of the store's own, for the files of programs that survive their host; undefined where there is none. */
  readonly directory?: string | undefined
  /**
   * Takes possession of the store and reads it. A store has one owner at a time, until `close` or the end of the process.
   * @throws StoreInUseError while another process owns it; StoreError if it cannot be read. Nothing has changed then
   */
  open(): StoreContents
  /**
   * Writes all changes, in their order, or none of them. Resolves when they are safe. One user of a store calls it again only when it has settled; two
   * users may call it at the same time.
   * @throws StoreError: it rejects only when nothing was written. If a row is the reason, because JSON or the store cannot hold it, `row` names it: a
   *   manager writes the rest again, with less of that row
   */
  write(changes: readonly StoreChange[]): Promise<void>
  /** Aborted when the store is lost for good, such as to another owner; its reason is the StoreError. Absent where that is never known. */
  readonly lost?: AbortSignal | undefined
  /** What has become of the tasks that no manager keeps any longer. Absent where nothing of them is kept. */
  readonly history?: TaskHistory | undefined
  /** Ends the possession, at the latest when it resolves. Closing again does nothing. */
  close(): void | Promise<void>
}

/** A store in this process or on its disk: its possession has ended when `close` returns. */
export interface LocalStore extends Store {
  close(): void
}

/** A store in a file: its changes are safe when a write returns. */
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
