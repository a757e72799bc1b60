/** Writes rows on behalf of the current owner of a store. */
import type { StoreChange } from '../store/store.js'
import { StoreError } from '../store/store-errors.js'
import { isAnswer, NotConnectedError, toStoreError } from './postgres-failure.js'
import { lostError, pause, readOwner, type PossessionOptions, type Tenure } from './possession.js'
import { toArrays } from './rows.js'

/** The wait before a write with an unknown outcome is sent again, in ms. It doubles from `first` up to `most`. */
const AGAIN_MS = { first: 50, most: 2000 } as const

/** How many batch numbers a write has used: none; its own; or two, when a fence has prevented a later commit of the write. */
const USED = { none: 0, written: 1, fenced: 2 } as const

export class OwnedRows {
  readonly #options: PossessionOptions
  readonly #epoch: number
  readonly #lost = new AbortController()
  /** The batch number of the next write. */
  #batch: number

  constructor(options: PossessionOptions, { epoch, batch }: Tenure) {
    this.#options = options
    this.#epoch = epoch
    this.#batch = batch
  }

  /** Aborts when another process has taken over the store. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Ends the ownership, so that later writes fail. Returns their error. */
  lose(why: string): StoreError {
    const error = lostError(this.#options.name, why)
    this.#lost.abort(error)
    return error
  }

  /**
   * Writes all changes, one write at a time.
   * @throws StoreError when no change was written
   */
  async write(changes: readonly StoreChange[]): Promise<void> {
    const { connection, statements, session, leaseMs, name, clock } = this.#options
    const values = [session, leaseMs, this.#epoch, this.#batch, ...toArrays(changes, name)]
    // Whether a write had no reply. The server may have committed it, or may still do so.
    let isUnknown = false
    let refusal: unknown
    for (let wait: number = AGAIN_MS.first; ; wait = Math.min(wait * 2, AGAIN_MS.most)) {
      this.lost.throwIfAborted()
      try {
        const isWritten = (await connection.query(statements.write, values)).length > 0
        const used = isWritten ? USED.written : await this.#numbersUsed(isUnknown)
        if (this.#isWritten(used, refusal)) return
      } catch (error) {
        if (error instanceof StoreError) throw error
        if (error instanceof NotConnectedError && !isUnknown) throw toStoreError(name, error)
        if (isAnswer(error) && !isUnknown) throw toStoreError(name, error)
        isUnknown = true
        if (isAnswer(error)) {
          refusal = error
          if (this.#isWritten(await this.#fence(), refusal)) return
        }
      }
      await pause(clock, wait)
    }
  }

  /**
   * Advances to the next free batch number. Returns whether the write is stored.
   * @throws StoreError for a refused write that can have no effect any more
   */
  #isWritten(used: number, refusal: unknown): boolean {
    this.#batch += used
    if (used === USED.fenced) throw toStoreError(this.#options.name, refusal)
    return used === USED.written
  }

  /**
   * Finds out why a write had no effect, from the row of the owner.
   * @throws StoreError when another process owns the store
   */
  async #numbersUsed(isUnknown: boolean): Promise<number> {
    const owner = await readOwner(this.#options)
    if (owner === undefined) throw this.lose('its owner row was removed')
    const { epoch, batch, holder } = owner
    if (epoch !== this.#epoch) throw this.lose(`another owner has taken over (${String(holder)})`)
    const used = Number(batch) - this.#batch
    if (used === USED.none || (isUnknown && (used === USED.written || used === USED.fenced))) return used
    throw this.lose(
      `its owner row has the batch ${String(batch)} in place of ${this.#batch}, as when a replica is promoted`,
    )
  }

  /**
   * Uses up the batch number of a write, so that it cannot be committed later. This is necessary when the server refuses a write whose earlier
   * attempt had no reply. If that attempt is committed already, the fence has no effect.
   */
  async #fence(): Promise<number> {
    const { connection, statements, session } = this.#options
    try {
      await connection.query(statements.fence, [session, this.#epoch, this.#batch])
      return await this.#numbersUsed(true)
    } catch (error) {
      if (error instanceof StoreError) throw error
      return USED.none
    }
  }
}
