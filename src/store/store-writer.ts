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

export interface StoreWriterOptions {
  readonly store: Pick<Store, 'write'>
  readonly pending: PendingChanges
  readonly clock: Clock
  readonly report: (error: unknown) => void
  /** Called after each write, when `pending` is clear. */
  readonly onWritten: () => void
}

export class StoreWriter {
  readonly #options: StoreWriterOptions
  #isScheduled = false
  #isClosed = false
  #retry: { readonly timer: unknown; readonly delayMs: number } | undefined

  constructor(options: StoreWriterOptions) {
    this.#options = options
  }

  /** Whether a write has failed and has not succeeded since. */
  get isFailing(): boolean {
    return this.#retry !== undefined
  }

  /** Whether everything has been written; if not, it will be at the end of this tick. */
  isSettled(): boolean {
    if (this.#options.pending.isEmpty()) return true
    if (!this.#isScheduled && this.#retry === undefined) {
      this.#isScheduled = true
      queueMicrotask(() => {
        this.#isScheduled = false
        this.flush()
      })
    }
    return false
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
  }

  #write(last: readonly StoreChange[]): void {
    const { pending, store, onWritten } = this.#options
    const changes = [...pending.read(), ...last]
    if (changes.length === 0) return
    if (this.#isClosed) throw new StoreError('STORE_CLOSED', 'The store was closed.')
    try {
      store.write(changes)
    } catch (error) {
      if (this.#reduce(error, last)) {
        this.#write(last)
        return
      }
      if (last.length === 0) this.#retryLater(error)
      throw error instanceof StoreError
        ? error
        : new StoreError('STORE_FAILED', 'The store could not be written.', { cause: error })
    }
    this.#stopRetrying()
    pending.clear()
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

  /** Reduces the row that is the reason of a failure, so that it does not keep the others from being written. What is written last is kept whole. */
  #reduce(error: unknown, last: readonly StoreChange[]): boolean {
    const row = error instanceof StoreError ? error.row : undefined
    if (row === undefined) return false
    const isLast = last.some((change) => 'put' in change && change.table === row.table && change.put.id === row.id)
    if (isLast || !this.#options.pending.reduce(row)) return false
    this.#options.report(error)
    return true
  }

  #retryLater(error: unknown): void {
    const { clock, report } = this.#options
    report(error)
    const delayMs = Math.min((this.#retry?.delayMs ?? RETRY_MS.first / 2) * 2, RETRY_MS.most)
    this.#stopRetrying()
    this.#retry = { timer: clock.setTimeout(() => this.flush(), delayMs, { name: 'retry of a write' }), delayMs }
  }

  #stopRetrying(): void {
    if (this.#retry !== undefined) this.#options.clock.clearTimeout(this.#retry.timer)
    this.#retry = undefined
  }
}
