/** Writes rows on behalf of the current owner of a store. */
import { elapsedMs, unrefTimer } from '../../system/clock.js'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import type { DeliveryAcceptance, Store } from '../store.js'
import { StoreError } from '../store-errors.js'
import { toRows, type RowBatch } from './rows.js'
import { lostError, pause, type StoreLease, type StoreLeaseOptions } from './store-lease.js'

/** The wait before a write with an unknown outcome is sent again, in ms. It doubles from `first` up to `most`. */
const AGAIN_MS = { first: 50, most: 2000 } as const

/** How long a write may have no answer before that is reported, in ms. A pooler may hold a statement for as long as its server is away. */
const SILENT_MS = 5000

/** How many batch numbers a write has used: none; its own; or two, when a fence has prevented a later commit of the write. */
const USED = { none: 0, written: 1, fenced: 2 } as const

export class OwnedRows {
  readonly #options: StoreLeaseOptions
  readonly #epoch: number
  readonly #lost = new AbortController()
  /** Aborts with the error of further writes: when the store is lost, or closed. */
  readonly #end = new AbortController()
  readonly #ended: Promise<never>
  /** Called when a write that was sent at this time has extended the lease. */
  #onExtended: (since: number) => void = () => undefined
  /** The batch number of the next write. */
  #batch: number
  /** Resolves when the last write has settled; it never rejects. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: StoreLeaseOptions, { epoch, batch }: StoreLease) {
    this.#options = options
    this.#epoch = epoch
    this.#batch = batch
    this.#ended = new Promise((_resolve, reject) => {
      const { signal } = this.#end
      signal.addEventListener('abort', () => reject(signal.reason as StoreError), { once: true })
    })
    this.#ended.catch(() => undefined)
  }

  set onExtended(listener: (since: number) => void) {
    this.#onExtended = listener
  }

  /** Aborts when another process has taken over the store. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Ends the ownership, so that later writes fail. Returns their error. */
  lose(why: string): StoreError {
    const error = lostError(this.#options.name, why)
    this.#end.abort(error)
    this.#lost.abort(error)
    return error
  }

  /** Ends the writes. One whose outcome is unknown is not sent again. */
  close(): void {
    const { name } = this.#options
    this.#end.abort(new StoreError('STORE_CLOSED', `${name}: the store was closed during a write.`))
  }

  /**
   * Writes all changes, one write at a time.
   * @throws StoreError when no change was written, or when the store is lost
   */
  readonly write: Store['write'] = (changes, onDelay) => {
    const writing = this.#last.then(() => this.#write(changes, onDelay))
    this.#last = writing.catch(() => undefined)
    return Promise.race([this.#ended, writing])
  }

  /** Accepts a message in a transaction of the host (`DeliveryAcceptance`). */
  readonly accept: DeliveryAcceptance['accept'] = async (client, delivery) => {
    this.#end.signal.throwIfAborted()
    const { database, session, name } = this.#options
    const [row] = toRows([{ table: 'deliveries', put: delivery }], name).parts.flat()
    if (row === undefined) return
    const { isOwner, isInTransaction, isAccepted } = await database.accept(client, session, this.#epoch, row)
    if (!isInTransaction) {
      throw new InvalidInputError(
        'client',
        'a client in none',
        'a client in a transaction that has written the message',
      )
    }
    if (!isOwner) throw lostError(name, 'another owner has taken over, or the client is of another database')
    if (isAccepted) return
    throw new AgentTasksError(
      'LEASE_ENDED',
      `The delivery ${delivery.id} is not open any more: another message may have its results. Roll the transaction back.`,
    )
  }

  /** @throws StoreError when the store is lost or closed before the database answers */
  readonly isCommitted: DeliveryAcceptance['isCommitted'] = async (deliveryId) => {
    const { database, session, clock } = this.#options
    for (;;) {
      this.#end.signal.throwIfAborted()
      try {
        return await database.isCommitted(session, deliveryId)
      } catch {
        // The next write reports that the server cannot be reached.
        await pause(clock, AGAIN_MS.most, this.#end.signal)
      }
    }
  }

  async #write(...[changes, onDelay]: Parameters<Store['write']>): Promise<void> {
    const { database, name, clock } = this.#options
    const rows = toRows(changes, name)
    // Whether a write had no reply. The server may have committed it, or may still do so.
    let isUnknown = false
    let refusal: unknown
    for (let tries = 1; ; tries += 1) {
      this.#end.signal.throwIfAborted()
      try {
        const since = elapsedMs(clock)
        const isSent = await this.#reportSilence(() => this.#send(rows), onDelay)
        if (isSent) this.#onExtended(since)
        const used = isSent ? USED.written : await this.#numbersUsed(isUnknown)
        if (this.#isWritten(used, refusal)) return
      } catch (error) {
        if (error instanceof StoreError) throw error
        if (!isUnknown && (await this.#hadNoEffect(error))) throw database.toStoreError(name, error)
        isUnknown = true
        const outcome = database.outcomeOf(error)
        if (outcome === 'refused' || outcome === 'inDoubt') {
          refusal = error
          if (this.#isWritten(await this.#fence(), refusal)) return
        }
        // The pauses between the reports become longer, as those between attempts do.
        if (isPowerOfTwo(tries)) onDelay?.(unknownError(database.toStoreError(name, error)))
      }
      await pause(clock, Math.min(AGAIN_MS.first * 2 ** (tries - 1), AGAIN_MS.most), this.#end.signal)
    }
  }

  async #reportSilence<T>(send: () => Promise<T>, onDelay?: (error: StoreError) => void): Promise<T> {
    const { name, clock } = this.#options
    const report = (): void =>
      onDelay?.(
        new StoreError('STORE_UNAVAILABLE', `${name}: the server has not answered a write for ${SILENT_MS} ms.`),
      )
    const timer = clock.setTimeout(report, SILENT_MS, { name: 'report of a slow write', kind: 'deadline' })
    unrefTimer(timer)
    try {
      return await send()
    } finally {
      clock.clearTimeout(timer)
    }
  }

  /** Sends a write. Returns whether it has the number of its batch, and so is stored. */
  #send(rows: RowBatch): Promise<boolean> {
    const { database, session, leaseMs } = this.#options
    return database.write(session, leaseMs, { epoch: this.#epoch, batch: this.#batch }, rows)
  }

  /**
   * Whether a failed write had no effect for certain. For an error that may have ended the session of the server, the owner's row says so: while the
   * session answers, the write that it refused cannot be committed later.
   */
  async #hadNoEffect(error: unknown): Promise<boolean> {
    const outcome = this.#options.database.outcomeOf(error)
    if (outcome !== 'inDoubt') return outcome !== 'unknown'
    try {
      return (await this.#numbersUsed(true)) === USED.none
    } catch (reason) {
      if (reason instanceof StoreError) throw reason
      return false
    }
  }

  /**
   * Advances to the next free batch number. Returns whether the write is stored.
   * @throws StoreError for a refused write that can have no effect any more
   */
  #isWritten(used: number, refusal: unknown): boolean {
    this.#batch += used
    if (used === USED.fenced) throw this.#options.database.toStoreError(this.#options.name, refusal)
    return used === USED.written
  }

  /**
   * Finds out why a write had no effect, from the row of the owner.
   * @throws StoreError when another process owns the store
   */
  async #numbersUsed(isUnknown: boolean): Promise<number> {
    const { database, session } = this.#options
    const owner = await database.owner(session)
    if (owner === undefined) throw this.lose('its owner row was removed')
    const { epoch, batch, holder } = owner
    if (epoch !== this.#epoch) throw this.lose(`another owner has taken over (${holder})`)
    const used = batch - this.#batch
    if (used === USED.none || (isUnknown && (used === USED.written || used === USED.fenced))) return used
    throw this.lose(`its owner row has the batch ${batch} in place of ${this.#batch}, as when a replica is promoted`)
  }

  /**
   * Uses up the batch number of a write, so that it cannot be committed later. This is necessary when the server refuses a write whose earlier
   * attempt had no reply. If that attempt is committed already, the fence has no effect.
   */
  async #fence(): Promise<number> {
    const { database, session } = this.#options
    try {
      await database.fence(session, this.#epoch, this.#batch)
      return await this.#numbersUsed(true)
    } catch (error) {
      if (error instanceof StoreError) throw error
      return USED.none
    }
  }
}

const isPowerOfTwo = (count: number): boolean => Number.isInteger(Math.log2(count))

function unknownError({ code, message, cause }: StoreError): StoreError {
  return new StoreError(code, `${message} It is unknown whether the last write was stored: it is sent again.`, {
    cause,
  })
}
