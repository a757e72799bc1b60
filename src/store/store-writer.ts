/**
 * Writes changes to a store, one write after the other: what changes in one tick, or during a write, is one write. A write that fails is reported and
 * repeated until it succeeds, with everything that was changed meanwhile.
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
  /** Takes what is to be written, with what only goes along. `stored` or `refused` follows. */
  readonly take: () => readonly StoreChange[]
  /** What was taken is stored. */
  readonly stored: () => void
  /** What was taken could not be stored: it is pending again, unless it has changed since. */
  readonly refused: () => void
  /** From now on only what is needed of a row is to be written, because the store cannot hold it. False when there is no less of it. */
  readonly reduce: (row: StoreRow) => boolean
}

/** What waits for a write. */
export interface StoreWait {
  /** All that was changed before the wait began is stored. */
  readonly onStored: () => void
  /**
   * It could not be stored, and the wait has ended; what is still pending is written later. A wait with this function ends with the first write
   * of what was changed before it. One without it goes on.
   */
  readonly onRefused?: (error: StoreError) => void
  /** The row that the wait is for: when the store cannot hold it, this wait alone is refused. It must not be pending after that. */
  readonly row?: StoreRow
}

/** Where what is notified of changes waits until they are stored. */
export interface HeldNotifications {
  /** Runs a change: what it notifies follows it. */
  readonly batch: (change: () => void) => void
  /** What waits now is released by the next `release`. */
  readonly mark: () => void
  readonly release: () => void
}

export interface StoreWriterOptions {
  readonly store: Pick<Store, 'write' | 'lost'>
  readonly pending: PendingChanges
  readonly clock: Clock
  readonly report: (error: unknown) => void
  /** Marked before each write, and released after it, when its waits have ended. These end in one batch. */
  readonly outbox: HeldNotifications
}

export class StoreWriter {
  readonly #options: StoreWriterOptions
  /** They wait for the next write. */
  #waits: StoreWait[] = []
  /** The present write; it never rejects. */
  #writing: Promise<void> | undefined
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

  /** Whether everything is stored; if not, it is being written, or will be at the end of this tick. */
  isSettled(): boolean {
    if (this.#isStored) return true
    if (!this.isFailing) this.flush()
    return false
  }

  /** Waits until what has changed by now is stored. */
  after(wait: StoreWait): void {
    this.#waits.push(wait)
    if (!this.isFailing || wait.onRefused !== undefined) this.flush()
  }

  /** Resolves when what has changed by now is stored. Rejects with StoreError when that cannot be done now. */
  stored(): Promise<void> {
    if (this.#isStored) return Promise.resolve()
    return new Promise((onStored, onRefused) => this.after({ onStored, onRefused }))
  }

  /** Writes what is pending, and nothing more afterwards. What cannot be written is lost. Resolves when that is over; never rejects. */
  async close(): Promise<void> {
    await this.#idle()
    this.#stopRetrying()
    this.#isClosed = true
  }

  /** Ends the present write, then writes the rest. */
  async #idle(): Promise<void> {
    for (let isLast = false; !isLast || this.#writing !== undefined;) {
      if (this.#writing === undefined) {
        isLast = true
        this.#write(this.#options.pending.take())
      }
      await this.#writing
    }
  }

  get #isStored(): boolean {
    return this.#writing === undefined && this.#options.pending.isEmpty()
  }

  /** Writes what is pending at the end of this tick, or after the present write. */
  flush(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#writePending()
    })
  }

  #writePending(): void {
    const { pending } = this.#options
    if (this.#writing === undefined) this.#write(pending.isEmpty() ? [] : pending.take())
  }

  /** @param changes what was taken */
  #write(changes: readonly StoreChange[]): void {
    const { outbox } = this.#options
    const waits = this.#waits.splice(0)
    if (changes.length === 0) {
      this.#end(waits)
      return
    }
    outbox.mark()
    this.#writing = this.#store(changes).then(
      () => this.#onStored(waits),
      (error: unknown) => this.#onRefused(error, waits),
    )
  }

  #store(changes: readonly StoreChange[]): Promise<void> {
    try {
      if (this.#isClosed) throw new StoreError('STORE_CLOSED', 'The store was closed.')
      // A store in JavaScript may return nothing.
      return Promise.resolve(this.#options.store.write(changes))
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason is passed on as it is
      return Promise.reject(error)
    }
  }

  #onStored(waits: readonly StoreWait[]): void {
    const { pending, outbox } = this.#options
    this.#writing = undefined
    pending.stored()
    this.#stopRetrying()
    this.#end(waits)
    outbox.release()
    if (!pending.isEmpty() || this.#waits.length > 0) this.flush()
  }

  #onRefused(error: unknown, waits: readonly StoreWait[]): void {
    const { pending, report } = this.#options
    this.#writing = undefined
    pending.refused()
    this.#waits.unshift(...waits)
    if (this.#leaveOut(error)) {
      this.#writePending()
      return
    }
    if (!this.#isClosed) {
      report(error)
      this.#retryLater()
    }
    const written = new Set(waits)
    this.#refuse(toStoreError(error), (wait) => written.has(wait))
    if (pending.isEmpty()) {
      // All of it was refused.
      this.#stopRetrying()
      this.#end(this.#waits.splice(0))
    } else if (this.#waits.some(({ onRefused }) => onRefused !== undefined)) this.flush()
  }

  #end(waits: readonly StoreWait[]): void {
    this.#call(waits.map(({ onStored }) => onStored))
  }

  /** One that throws must not keep the others waiting. */
  #call(ends: readonly (() => void)[]): void {
    const { outbox, report } = this.#options
    if (ends.length === 0) return
    outbox.batch(() => {
      for (const end of ends) {
        try {
          end()
        } catch (error) {
          report(error)
        }
      }
    })
  }

  /** Leaves out the row that is the reason of a failure, or a part of it, so that it does not keep the others from being written. */
  #leaveOut(error: unknown): boolean {
    const row = error instanceof StoreError ? error.row : undefined
    if (row === undefined) return false
    const isLeftOut =
      this.#refuse(error as StoreError, (wait) => wait.row !== undefined && isSameRow(row, wait.row)) ||
      this.#options.pending.reduce(row)
    if (isLeftOut) this.#options.report(error)
    return isLeftOut
  }

  /** Ends those of some waits that can be refused. Returns whether there was one. */
  #refuse(error: StoreError, isMeant: (wait: StoreWait) => boolean): boolean {
    const isRefused = (wait: StoreWait): boolean => wait.onRefused !== undefined && isMeant(wait)
    const refused = this.#waits.filter(isRefused)
    this.#waits = this.#waits.filter((wait) => !isRefused(wait))
    this.#call(
      refused.map(
        ({ onRefused }) =>
          () =>
            onRefused?.(error),
      ),
    )
    return refused.length > 0
  }

  #retryLater(): void {
    if (this.#retryTimer !== undefined) return
    const { clock, store } = this.#options
    this.#retryMs = this.isFailing ? Math.min(this.#retryMs * 2, RETRY_MS.most) : RETRY_MS.first
    const retry = (): void => {
      this.#retryTimer = undefined
      this.#writePending()
    }
    // What is lost is not written again.
    if (store.lost?.aborted === true) return
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

const isSameRow = (a: StoreRow, b: StoreRow): boolean => a.table === b.table && a.id === b.id
