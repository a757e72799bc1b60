/**
 * Writes changes to a store: together, at the end of the tick, or at once. A write that fails is reported and repeated until it succeeds, with
 * everything that was changed meanwhile.
 */
import type { Clock } from '../clock.js'
import type { Store, StoreChange } from './store.js'
import { StoreError, type StoreRow } from './store-errors.js'

/** When a write that failed is repeated, in ms: first, and at most. */
const RETRY_MS = { first: 100, most: 30_000 } as const

/** What has changed since the last write. */
export interface PendingChanges {
  /** Whether nothing has to be written now. */
  readonly isEmpty: () => boolean
  /** What is to be written, with what only goes along. */
  readonly read: () => readonly StoreChange[]
  /** They have been written. */
  readonly clear: () => void
  /** From now on only what is needed of a row is to be written, because the store cannot hold it. False when there is no less of it. */
  readonly reduce: (row: StoreRow) => boolean
}

/** What waits for a write. */
export interface StoreWait {
  /** All that was pending when the wait began has been written. */
  readonly onStored: () => void
  /**
   * It could not be written, and the wait has ended; what is still pending is written later. A wait with this function ends with the first write
   * after it began. One without it goes on.
   */
  readonly onRefused?: (error: StoreError) => void
  /** The row that the wait is for: when the store cannot hold it, this wait alone is refused. It must not be pending after that. */
  readonly row?: StoreRow
}

export interface StoreWriterOptions {
  readonly store: Pick<Store, 'write'>
  readonly pending: PendingChanges
  readonly clock: Clock
  readonly report: (error: unknown) => void
  /** Called after each write, when `pending` is clear and the waits have ended. */
  readonly onWritten: () => void
}

export class StoreWriter {
  readonly #options: StoreWriterOptions
  #waits: StoreWait[] = []
  #isScheduled = false
  #isClosed = false
  /** How long the last write that failed has waited, or waits, to be repeated, in ms; 0 when none has failed since one succeeded. */
  #retryMs = 0
  #retryTimer: unknown

  constructor(options: StoreWriterOptions) {
    this.#options = options
  }

  /** Whether a write has failed and has not succeeded since. */
  get isFailing(): boolean {
    return this.#retryMs > 0
  }

  /** Whether everything has been written; if not, it will be at the end of this tick. */
  isSettled(): boolean {
    if (this.#options.pending.isEmpty()) return true
    if (!this.isFailing) this.#schedule()
    return false
  }

  /** Waits until what is pending now has been written. */
  after(wait: StoreWait): void {
    this.#waits.push(wait)
    if (!this.isFailing || wait.onRefused !== undefined) this.#schedule()
  }

  /** Resolves when what is pending now has been written. Rejects with StoreError when that cannot be done now. */
  stored(): Promise<void> {
    if (this.#options.pending.isEmpty()) return Promise.resolve()
    return new Promise((onStored, onRefused) => this.after({ onStored, onRefused }))
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.flush()
    })
  }

  /** Writes what is pending now. False when that failed: it was reported, and will be repeated. */
  flush(): boolean {
    try {
      this.write()
      return true
    } catch {
      return false
    }
  }

  /** Writes what is pending, and then `last`. @throws StoreError; `last` is not repeated */
  write(last: readonly StoreChange[] = []): void {
    if (last.length > 0 || !this.#options.pending.isEmpty()) this.#write(last)
    else this.#endWaits()
  }

  #write(last: readonly StoreChange[]): void {
    const { pending, store, onWritten } = this.#options
    const changes = [...pending.read(), ...last]
    if (changes.length === 0) {
      this.#endWaits()
      return
    }
    try {
      if (this.#isClosed) throw new StoreError('STORE_CLOSED', 'The store was closed.')
      store.write(changes)
    } catch (error) {
      if (this.#leaveOut(error, last)) {
        this.#write(last)
        return
      }
      const failure = toStoreError(error)
      if (last.length === 0) this.#fail(failure, error)
      throw failure
    }
    this.#stopRetrying()
    pending.clear()
    this.#endWaits()
    onWritten()
  }

  /** Writes what is pending, and nothing more afterwards. What cannot be written is lost. */
  close(): void {
    try {
      this.#write([])
    } catch {
      // It was reported.
    }
    this.#stopRetrying()
    this.#isClosed = true
  }

  #endWaits(): void {
    for (const { onStored } of this.#waits.splice(0)) this.#call(onStored)
  }

  /** One that throws must not keep the others waiting. */
  #call(end: () => void): void {
    try {
      end()
    } catch (error) {
      this.#options.report(error)
    }
  }

  /** Leaves out the row that is the reason of a failure, or a part of it, so that it does not keep the others from being written. What is written last is kept whole. */
  #leaveOut(error: unknown, last: readonly StoreChange[]): boolean {
    const row = error instanceof StoreError ? error.row : undefined
    if (row === undefined || last.some((change) => 'put' in change && isSameRow(row, rowOf(change)))) return false
    const isLeftOut =
      this.#refuse(error as StoreError, (wait) => wait.row !== undefined && isSameRow(row, wait.row)) ||
      this.#options.pending.reduce(row)
    if (isLeftOut) this.#options.report(error)
    return isLeftOut
  }

  /** Ends the waits that can be refused, or some of them. Returns whether there was one. */
  #refuse(error: StoreError, isMeant: (wait: StoreWait) => boolean = () => true): boolean {
    const isRefused = (wait: StoreWait): boolean => wait.onRefused !== undefined && isMeant(wait)
    const refused = this.#waits.filter(isRefused)
    this.#waits = this.#waits.filter((wait) => !isRefused(wait))
    for (const { onRefused } of refused) this.#call(() => onRefused?.(error))
    return refused.length > 0
  }

  #fail(failure: StoreError, reason: unknown): void {
    const { pending, report } = this.#options
    if (!this.#isClosed) {
      report(reason)
      this.#retryLater()
    }
    this.#refuse(failure)
    if (!pending.isEmpty()) return
    // All of it was refused.
    this.#stopRetrying()
    this.#endWaits()
  }

  #retryLater(): void {
    if (this.#retryTimer !== undefined) return
    const { clock } = this.#options
    this.#retryMs = this.isFailing ? Math.min(this.#retryMs * 2, RETRY_MS.most) : RETRY_MS.first
    const retry = (): void => {
      this.#retryTimer = undefined
      this.flush()
    }
    this.#retryTimer = clock.setTimeout(retry, this.#retryMs, { name: 'retry of a write' })
  }

  #stopRetrying(): void {
    if (this.#retryTimer !== undefined) this.#options.clock.clearTimeout(this.#retryTimer)
    this.#retryTimer = undefined
    this.#retryMs = 0
  }
}

const toStoreError = (error: unknown): StoreError =>
  error instanceof StoreError
    ? error
    : new StoreError('STORE_FAILED', 'The store could not be written.', { cause: error })

const rowOf = (change: StoreChange): StoreRow =>
  'put' in change ? { table: change.table, id: change.put.id } : { table: change.table, id: change.remove }

const isSameRow = (a: StoreRow, b: StoreRow): boolean => a.table === b.table && a.id === b.id
