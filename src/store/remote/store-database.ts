/**
 * The operations of a database on which a store is kept. A store on a server is an implementation of them; the rest is the same for each.
 *
 * Each operation has its effect as a whole, or not at all. It rejects with an error of the database, for which `outcomeOf` says whether it had one.
 */
import type { HistoryRow } from '../history/history-rows.js'
import type { PastTask, PastTaskQuery } from '../history/task-history.js'
import type { StoreError } from '../store-errors.js'
import type { DeliveryAcceptance } from '../store.js'
import type { DatabaseRow, PutRow, RowBatch, RowKey } from './rows.js'

/** The row of a session's owner. */
export interface StoreOwner {
  /** The number of the owner among all owners. */
  readonly epoch: number
  /** The number of the owner's next write. */
  readonly batch: number
  /** The process that owns the session, in words. */
  readonly holder: string
  /** The expiry of the lease; only compared with itself. */
  readonly until: number
  /** The time until the expiry by the clock of the server, in ms. */
  readonly leftMs: number
}

/** A statement that failed: it was not sent, or refused; or the server answered, but may have committed it before; or there was no answer. */
export type Outcome = 'notSent' | 'refused' | 'inDoubt' | 'unknown'

export type CallersClient = Parameters<DeliveryAcceptance['accept']>[0]

/** What `accept` has found. The row is put if all of it is true. */
export type Acceptance = Readonly<Record<'isOwner' | 'isInTransaction' | 'isAccepted', boolean>>

export interface StoreDatabase {
  /** The name in errors, of one session or of the whole schema. */
  nameOf(session?: string): string
  /**
   * Creates the tables if they are missing, or migrates an older layout. Hosts that do this at the same time wait for each other.
   * @throws StoreError for tables of another program or of a later version, which are left unchanged
   */
  prepare(): Promise<void>
  /**
   * Whether there are tables for this. The first owner creates them.
   * @throws StoreError as `prepare` does
   */
  has(part: 'rows' | 'history'): Promise<boolean>

  /** Takes a session whose lease has expired, or that never had an owner, under the next epoch. Returns undefined for any other. */
  take(session: string, leaseMs: number, holder: string): Promise<Pick<StoreOwner, 'epoch' | 'batch'> | undefined>
  /** Returns the row of the last owner; undefined when there was none. */
  owner(session: string): Promise<StoreOwner | undefined>
  /** Extends the lease from now. Returns whether the epoch owns the session. */
  renew(session: string, leaseMs: number, epoch: number): Promise<boolean>
  /** Ends the lease now, if the epoch owns the session. */
  release(session: string, epoch: number): Promise<void>
  /**
   * Adds 2 to the batch number of the owner, if both numbers are those of the owner. A write, which adds 1, then has no effect under the old number,
   * even if it is still on its way.
   */
  fence(session: string, epoch: number, batch: number): Promise<void>

  /** All sessions that have or had an owner, with their present owners, by name. */
  sessions(): Promise<readonly { readonly session: string; readonly holder: string | undefined }[]>
  /** The rows of a session, by kind, place and id: those of some kinds, or all. */
  read(session: string, kinds?: readonly string[]): Promise<readonly DatabaseRow[]>
  /** The rows of a kind with the highest places, at most `limit`, in the order of their places. */
  last(session: string, kind: string, limit: number): Promise<readonly DatabaseRow[]>
  /**
   * Adds 1 to the batch number of the owner, extends its lease, removes rows and puts rows. All of it is on the disk when this resolves. Returns false,
   * and changes nothing, when the numbers are not those of the owner.
   */
  write(session: string, leaseMs: number, owner: Pick<StoreOwner, 'epoch' | 'batch'>, rows: RowBatch): Promise<boolean>

  /**
   * Puts the row of a delivery whose present row has the state `sent`, through a client of the caller that is in a transaction, and lets no other owner
   * take the session before the end of that.
   * @throws the error of the client
   */
  accept(client: CallersClient, session: string, epoch: number, row: PutRow): Promise<Acceptance>
  /** Whether the row of a delivery was committed by `accept`. Waits for transactions that have changed it. */
  isCommitted(session: string, id: string): Promise<boolean>

  /** The past tasks of the sessions. */
  readonly history: {
    /** Adds rows with different ids. A row replaces one of the same id. */
    add(session: string, rows: readonly HistoryRow[]): Promise<void>
    find(session: string, key: RowKey): Promise<HistoryBody | undefined>
    /** The tasks that match a query and have not ended before `earliest`, the latest first. */
    query(session: string, query: PastTaskQuery, earliest: number): Promise<readonly HistoryBody[]>
    /** The earliest tasks, at most this many; each with the number and the size of all. */
    earliest(session: string, most: number): Promise<readonly EarliestTask[]>
    remove(session: string, keys: readonly RowKey[]): Promise<void>
  }

  outcomeOf(error: unknown): Outcome
  /** Converts an error to a `StoreError` that names the store. */
  toStoreError(name: string, error: unknown): StoreError
  /** Ends the connection. Never rejects. */
  close(): Promise<void>
}

export type HistoryBody = Readonly<Record<'id' | 'body' | 'checksum', unknown>>

/** A row of the history for a sweep. */
export interface EarliestTask extends Pick<PastTask, 'completedAt'>, RowKey {
  readonly bytes: number
  /** The number of all tasks of the session, and their size in bytes. */
  readonly tasks: number
  readonly total: number
}
