/**
 * Writes changes to a store, one write at a time. The changes of one tick, or those that come during a write, become one write. A failed write is
 * reported, and repeated until it succeeds, together with all later changes.
 */
import { callContext } from '../isolation/call-context.js'
import type { Clock } from '../system/clock.js'
import type { Store, StoreChange } from './store.js'
import { StoreError, type StoreRow } from './store-errors.js'

/** The wait before a failed write is repeated, in ms. It doubles from `first` up to `most`. */
const RETRY_MS = { first: 100, most: 30_000 } as const

/** The changes since the last write. */
export interface PendingChanges {
  readonly isEmpty: () => boolean
  /** Takes the pending changes, and the changes that are written only together with others. `stored` or `refused` is called next. */
  readonly take: () => readonly StoreChange[]
  /** Called when the taken changes are stored. */
  readonly stored: () => void
  /** Called when the taken changes could not be stored. They are pending again, unless they have changed since. */
  readonly refused: () => void
  /**
   * Called when the store cannot hold a row. From now on only the necessary parts of the row are written. Returns false when the row cannot be reduced.
   */
  readonly reduce: (row: StoreRow) => boolean
}

export interface StoreWait {
  /** Called when all changes from before the wait are stored. */
  readonly onStored: () => void
  /**
   * Called when the first write of these changes fails; the changes are written later, but the wait has ended. A wait without this function continues
   * until they are stored.
   */
  readonly onRefused?: (error: StoreError) => void
  /** A row that belongs to this wait. If the store cannot hold the row, only this wait is refused. After that, the row must not be pending. */
  readonly row?: StoreRow
}

/** Holds notifications back until the changes that they report are stored. */
export interface HeldNotifications {
  /** Runs a change whose notifications are held back. */
  readonly batch: (change: () => void) => void
  /** Marks the notifications that are held now. The next `release` releases them. */
  readonly mark: () => void
  readonly release: () => void
}

export interface StoreWriterOptions {
  readonly store: Pick<Store, 'write' | 'lost'>
  readonly pending: PendingChanges
  readonly clock: Clock
  readonly report: (error: unknown) => void
  /** The notifications. They are marked before each write, and released in one batch after the write, when its waits have ended. */
  readonly outbox: HeldNotifications
}

export class StoreWriter {
  readonly #options: StoreWriterOptions
  /** The store is called in the context in which its manager was created. */
  readonly #context = callContext()
  #waits: StoreWait[] = []
  /** The current write; it never rejects. */
  #writing: Promise<void> | undefined
  #isScheduled = false
  #isClosed = false
  /** The wait before the next attempt, in ms; 0 after a successful write. */
  #retryMs = 0
  #retryTimer: unknown

  constructor(options: StoreWriterOptions) {
    this.#options = options
  }

  /** Whether the last write has failed. */
  get isFailing(): boolean {
    return this.#retryMs > 0
  }

  /** Whether all changes are stored. Otherwise a write is in progress, or follows at the end of this tick. */
  isSettled(): boolean {
    if (this.#isStored) return true
    if (!this.isFailing) this.flush()
    return false
  }

  /** Adds a wait for the storage of all changes so far. */
  after(wait: StoreWait): void {
    this.#waits.push(wait)
    if (!this.isFailing || wait.onRefused !== undefined) this.flush()
  }

  /** Resolves when all changes so far are stored. Rejects with a StoreError when they cannot be stored now. */
  stored(): Promise<void> {
    if (this.#isStored) return Promise.resolve()
    return new Promise((onStored, onRefused) => this.after({ onStored, onRefused }))
  }

  /** Writes the pending changes, and stops. Changes that the store refuses are lost. Never rejects. */
  async close(): Promise<void> {
    await this.#idle()
    this.#stopRetrying()
    this.#isClosed = true
  }

  /** Waits for the current write, and then writes the pending changes. */
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

  /** Writes the pending changes at the end of this tick, or after the current write. */
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

  /** @param changes the taken changes */
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
      // The store may be written in JavaScript, and return undefined in place of a promise.
      const { store, report } = this.#options
      return Promise.resolve(this.#context.runInAsyncScope(() => store.write(changes, report)))
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason is passed on unchanged
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
      // The store refused every row, so nothing is left to write again.
      this.#stopRetrying()
      this.#end(this.#waits.splice(0))
    } else if (this.#waits.some(({ onRefused }) => onRefused !== undefined)) this.flush()
  }

  #end(waits: readonly StoreWait[]): void {
    this.#call(waits.map(({ onStored }) => onStored))
  }

  /** Calls each function. An exception of one must not affect the others. */
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

  /** Removes the row that caused a failure, or a part of it, so that it does not block the other rows. */
  #leaveOut(error: unknown): boolean {
    const row = error instanceof StoreError ? error.row : undefined
    if (row === undefined) return false
    const isLeftOut =
      this.#refuse(error as StoreError, (wait) => wait.row !== undefined && isSameRow(row, wait.row)) ||
      this.#options.pending.reduce(row)
    if (isLeftOut) this.#options.report(error)
    return isLeftOut
  }

  /** Refuses the matching waits that have `onRefused`. Returns whether there was one. */
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
    // A write to a lost store is not repeated.
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
