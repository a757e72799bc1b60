/**
 * The interface for durability. A store keeps tasks and their undelivered results, so that they survive the end of the process.
 * `sqliteStore` and `memoryStore` implement it. `storeContract` of `agent-tasks/testing` checks your own implementation.
 */
import type { QuestionRef } from '../../machines/owed-questions.js'
import type { DeliveryStatus } from '../../machines/records.js'
import type { AsyncTaskStatus } from '../../machines/task-status.js'
import type { TaskHistory } from './history/task-history.js'
import type { AgentTasksError } from '../errors.js'

/** A JSON object. */
export type StoredJson = Readonly<Record<string, unknown>>

/** A background task. */
export interface StoredTask {
  /** The id of the task. It is unique among the stored tasks. */
  readonly id: string
  /** The owner that receives the result. */
  readonly owner: string
  readonly status: AsyncTaskStatus
  /** The state of the message that carries the result. */
  readonly delivery: DeliveryStatus
  /** The number of the task's current run; 1 for the first. */
  readonly attempt: number
  /** The sequence number of the last change of the task. */
  readonly seq: number
  /** When the task was launched, in ms since the epoch. */
  readonly launchedAt: number
  /** When the task ended, in ms since the epoch. */
  readonly completedAt?: number
  /** The deadline of the task, in ms since the epoch. */
  readonly deadlineAt?: number
  /** The record of the task. */
  readonly record: StoredJson
  /** The data for another run of the task, and for finding its program after a restart. */
  readonly run?: StoredJson
}

/** A message with results. It is stored before it is sent, and removed when its owner has confirmed or refused it. */
export interface StoredDelivery {
  /** The delivery id. No other message ever gets the same one. */
  readonly id: string
  /** The owner that receives the message. */
  readonly owner: string
  /** `sent`: it is unknown whether the message arrived. `accepted`: the host has accepted the message, but has not confirmed it yet. */
  readonly state: 'sent' | 'accepted'
  /** When the message was sent, in ms since the epoch. */
  readonly at: number
  /** The ids of the tasks whose results the message carries. */
  readonly taskIds: readonly string[]
  /** The questions of durable tasks in the message; absent when there are none. */
  readonly questions?: readonly QuestionRef[]
  /** Whether the host has committed the message in the database of the store (`TurnDelivery.acceptIn`), so that it has arrived for certain. */
  readonly isCommitted?: true
}

/** A command task. */
export interface StoredCommandTask {
  /** The id of the task. It is unique among the stored command tasks. */
  readonly id: string
  /** The id of the instance that runs the commands. */
  readonly instanceId: string
  readonly status: string
  /** The place of the task in the order of submission. */
  readonly seq: number
  /** When the task was submitted, in ms since the epoch. */
  readonly createdAt: number
  /** When the task ended, in ms since the epoch. */
  readonly completedAt?: number
  /** The record of the task. The outcomes of its commands are in separate rows. */
  readonly record: StoredJson
  /** The request that submitted the task. A repeated request with the same idempotency key is compared with it. */
  readonly submission?: StoredJson
}

/** A command that has ended. */
export interface StoredCommand {
  /** The id of the command. It is unique among the stored commands. */
  readonly id: string
  /** The id of the task of the command. */
  readonly taskId: string
  /** The index of the command in its task, from 0. */
  readonly index: number
  /** The status and the times of the command, and its result or error. */
  readonly outcome: StoredJson
}

/** A remote worker that may connect again. */
export interface StoredInstance {
  /** The id under which the worker registered. */
  readonly id: string
  /** The SHA-256 of the worker's secret, in hexadecimal. */
  readonly secretSha256: string
  /** The data of the registration. */
  readonly registration: StoredJson
}

/** State of a feature that is not part of a task, such as a schedule. */
export interface StoredFeatureState {
  /** The id of the state. It begins with the name of the feature, and is unique among all features. */
  readonly id: string
  /** The name of the feature. */
  readonly feature: string
  /** The data of the feature. */
  readonly data: StoredJson
}

/** What a turn whose messages the host keeps has in a store and for users. */
export interface TurnFields {
  /** The id of the turn, which `turnId` makes of its owner and number. */
  readonly id: string
  /** The conversation. */
  readonly owner: string
  /** The number of the turn among those of its owner, from 1. */
  readonly seq: number
  /** When the turn ended, in ms since the epoch. */
  readonly at: number
  /** The messages of the turn, as JSON: its message first. */
  readonly messages: readonly unknown[]
}

/** A turn of a conversation whose messages the host keeps. */
export interface StoredTurn extends TurnFields {
  /** The `id` that the caller of `send` has passed, which `turns` of a conversation returns as `messageId`. */
  readonly inputId?: string
}

/** The kept turns of a store. */
export interface TurnLog {
  /**
   * Returns the last turns of an owner, at most `limit`, in the order of `seq`. Without an owner, it returns all turns of all owners.
   * @throws StoreError when they cannot be read
   */
  read(owner?: string, limit?: number): Promise<readonly StoredTurn[]>
}

/** The rows of a store, by table. */
export interface StoreTables {
  /** Background tasks. */
  readonly tasks: StoredTask
  /** Messages that are not confirmed yet. */
  readonly deliveries: StoredDelivery
  /** Command tasks. */
  readonly commandTasks: StoredCommandTask
  /** Ended commands of command tasks. */
  readonly commands: StoredCommand
  /** Remote workers. */
  readonly instances: StoredInstance
  /** The state of features. */
  readonly featureStates: StoredFeatureState
  /** The turns of conversations. */
  readonly turns: StoredTurn
}

/** The name of a table. */
export type StoreTable = keyof StoreTables

/** A change of one row. `put` adds or replaces a row. Removing an id that is not stored has no effect. */
export type StoreChange = {
  readonly [Table in StoreTable]:
    { readonly table: Table; readonly put: StoreTables[Table] } | { readonly table: Table; readonly remove: string }
}[StoreTable]

/** The content of a store. Tasks and command tasks are in the order of `seq`. `open` returns no turns, because `Store.turns` reads those. */
export type StoreContents = { readonly [Table in StoreTable]: readonly StoreTables[Table][] }

/** Keeps tasks on a disk, or elsewhere. Implement this interface for a store of your own. */
export interface Store {
  /** The name of the store in errors, such as the path of its file. Default: "the store". */
  readonly name?: string | undefined
  /** A folder for the files of programs that survive the host (`survivesHost`); undefined if the store has none. */
  readonly directory?: string | undefined
  /**
   * Takes ownership of the store and reads it. A store has one owner at a time, until `close` or the end of the process.
   * @throws STORE_IN_USE while another process owns the store
   * @throws StoreError when the store cannot be read; the store is left unchanged
   */
  open(): StoreContents
  /**
   * Writes all changes in order, or writes no change. Resolves when the changes are durable. Each user of the store waits for its own write before it
   * calls this again, but two users may call it at the same time.
   * @throws StoreError only when no change was written. If one row is the cause, because JSON or the store cannot hold it, `row` names the row, and the
   * manager writes the others again with a reduced row
   * @param onDelay called with the reason while it is unknown whether the changes were written, and the store tries again. The manager reports it
   */
  write(changes: readonly StoreChange[], onDelay?: (error: AgentTasksError) => void): Promise<void>
  /** Aborts when the store is lost for good, for example to another owner. The reason is the StoreError. Absent for stores that cannot detect a loss. */
  readonly lost?: AbortSignal | undefined
  /** The history: ended tasks that no manager holds any more. Absent for a store without a history. */
  readonly history?: TaskHistory | undefined
  /** The turns of conversations. Absent for a store that cannot keep them. */
  readonly turns?: TurnLog | undefined
  /** Accepts messages in transactions of the host. Absent for a store in this process or on its disk. */
  readonly acceptance?:
    | {
        /**
         * Puts the row of a message whose stored state is `sent`, in the transaction in which the client is. No other process can take over the store
         * before the transaction ends.
         * @throws StoreError `STORE_LOST` when this process does not own the store any more
         * @throws AgentTasksError `LEASE_ENDED` when there is no such row
         * @throws INVALID_INPUT when the client is in no transaction, or in one that has written nothing
         * @throws the error of the client
         */
        accept(
          client: { query(text: string, values: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }> },
          delivery: StoredDelivery,
        ): Promise<void>
        /**
         * Returns whether a transaction with `accept` is committed. Waits for its end.
         * @throws StoreError when the store is lost or closed
         */
        isCommitted(deliveryId: string): Promise<boolean>
      }
    | undefined
  /** Ends the ownership, before the promise resolves. A second call has no effect. */
  close(): void | Promise<void>
}

/** How a store accepts messages in transactions of the host. */
export type DeliveryAcceptance = NonNullable<Store['acceptance']>

/** A store in this process or on its disk. When `close` returns, the ownership has ended. */
export interface LocalStore extends Store {
  close(): void
}

/** A store in a file. When a write returns, its changes are durable. */
export interface FileStore extends LocalStore {
  /**
   * Like `write`, but synchronous.
   * @throws StoreError as `write` does
   */
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
  'turns',
]

/** The tables that are read when a store is opened. */
export const OPENED_TABLES: readonly StoreTable[] = STORE_TABLES.filter((table) => table !== 'turns')

/** Returns the id of a turn. `ownerOfTurn` returns its owner. */
export const turnId = (owner: string, seq: number): string => `${seq}/${owner}`

export const ownerOfTurn = (id: string): string => id.slice(id.indexOf('/') + 1)

/** Collects the rows of all tables. */
export const contentsOf = (rowsOf: (table: StoreTable) => readonly unknown[]): StoreContents =>
  Object.fromEntries(STORE_TABLES.map((table) => [table, rowsOf(table)])) as unknown as StoreContents

/** Returns the changes that put all rows. */
export const putsOf = (contents: StoreContents): StoreChange[] =>
  STORE_TABLES.flatMap((table) => contents[table].map((put) => ({ table, put }) as StoreChange))

/** Returns the id of the row that a change concerns. */
export const idOf = (change: StoreChange): string => ('remove' in change ? change.remove : change.put.id)
