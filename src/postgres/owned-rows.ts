/** Writes of the present owner of a store. */
import type { StoreChange } from '../store/store.js'
import { StoreError } from '../store/store-errors.js'
import { NotConnectedError } from './connection.js'
import { isAnswer, toStoreError } from './postgres-failure.js'
import { lostError, pause, readOwner, type PossessionOptions, type Tenure } from './possession.js'
import { toArrays } from './rows.js'

/** How long a write whose fate is unknown waits to be sent again, in ms: first, and at most. */
const AGAIN_MS = { first: 50, most: 2000 } as const

export class OwnedRows {
  readonly #options: PossessionOptions
  readonly #epoch: number
  readonly #lost = new AbortController()
  /** The number of the next write. */
  #batch: number

  constructor(options: PossessionOptions, { epoch, batch }: Tenure) {
    this.#options = options
    this.#epoch = epoch
    this.#batch = batch
  }

  /** Aborted when another has taken over. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Nothing is written any more. */
  lose(why: string): StoreError {
    const error = lostError(this.#options.name, why)
    this.#lost.abort(error)
    return error
  }

  /**
   * Writes all changes, one write at a time.
   * @throws StoreError: nothing was written
   */
  async write(changes: readonly StoreChange[]): Promise<void> {
    const { connection, statements, session, leaseMs, name, clock } = this.#options
    const values = [session, leaseMs, this.#epoch, this.#batch, ...toArrays(changes, name)]
    // Once a write was sent without an answer, it may have been committed, or may be still.
    let isUnknown = false
    for (let wait: number = AGAIN_MS.first; ; wait = Math.min(wait * 2, AGAIN_MS.most)) {
      this.lost.throwIfAborted()
      try {
        const isWritten = (await connection.query(statements.write, values)).length > 0
        if (isWritten || (await this.#wasWritten(isUnknown))) {
          this.#batch += 1
          return
        }
      } catch (error) {
        if (error instanceof StoreError) throw error
        if (error instanceof NotConnectedError && !isUnknown) throw toStoreError(name, error.cause)
        if (isAnswer(error) && !isUnknown) throw toStoreError(name, error)
        if (isAnswer(error) && (await this.#isFenced())) throw toStoreError(name, error)
        isUnknown = true
      }
      await pause(clock, wait)
    }
  }

  /** Why the present number is not the next one: its write was committed before, or somebody else writes. @throws StoreError in that case */
  async #wasWritten(isUnknown: boolean): Promise<boolean> {
    const owner = await readOwner(this.#options)
    if (owner === undefined) throw this.lose('its owner row was removed')
    const { epoch, batch, holder } = owner
    if (epoch !== this.#epoch) throw this.lose(`another owner has taken over (${String(holder)})`)
    if (isUnknown && batch === this.#batch + 1) return true
    if (batch === this.#batch) return false
    throw this.lose('writes of this owner are missing, as on a replica that became the server, or are not from here')
  }

  /** The server refuses what was sent without an answer before: makes sure that the earlier one has no effect either. */
  async #isFenced(): Promise<boolean> {
    const { connection, statements, session } = this.#options
    try {
      const fenced = await connection.query(statements.fence, [session, this.#epoch, this.#batch])
      if (fenced.length > 0) this.#batch += 1
      return fenced.length > 0
    } catch {
      return false
    }
  }
}
