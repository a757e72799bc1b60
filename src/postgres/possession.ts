/**
 * The ownership of a store: a row with an epoch and an expiry time, measured by the clock of the server. Each owner has its own epoch, and writes only
 * under this epoch. A process that was stopped for longer than its lease can therefore write nothing after another process has taken over.
 */
import { hostname } from 'node:os'
import { unrefTimer, type Clock } from '../clock.js'
import { StoreError, StoreInUseError } from '../store/store-errors.js'
import type { Connection, Row } from './connection.js'
import type { Statements } from './statements.js'

/** The maximum time between two checks of a lease that is about to expire, in ms. */
const LOOK_MS = 1000

export interface PossessionOptions {
  readonly connection: Connection
  readonly statements: Statements
  readonly session: string
  readonly leaseMs: number
  readonly clock: Clock
  /** The name of the store in errors. */
  readonly name: string
}

/** The epoch of this owner, and the batch number of its next write. */
export interface Tenure {
  readonly epoch: number
  readonly batch: number
}

/**
 * Takes ownership. While the lease of another owner has not expired, it waits, because that owner may be dead.
 * @throws StoreInUseError when the other owner renews its lease
 */
export async function takePossession(options: PossessionOptions): Promise<Tenure> {
  const { connection, statements, session, leaseMs, clock, name } = options
  let until: unknown
  for (;;) {
    const [taken] = await connection.query(statements.take, [session, leaseMs, holder()])
    if (taken !== undefined) return taken as unknown as Tenure
    const owner = await readOwner(options)
    if (owner === undefined) continue
    if (until !== undefined && owner['until'] !== until) {
      const other = { owner: String(owner['holder']), instead: 'session or schema' }
      throw new StoreInUseError(name, undefined, other)
    }
    until = owner['until']
    await pause(clock, Math.min(Math.max(Number(owner['left_ms']), 0) + 10, LOOK_MS))
  }
}

/** Returns the row of the current owner; undefined when the store never had one. */
export async function readOwner({ connection, statements, session }: PossessionOptions): Promise<Row | undefined> {
  const [owner] = await connection.query(statements.owner, [session])
  return owner
}

/**
 * Renews the lease until the returned function is called. A failed renewal is repeated, also after an outage of the server: this process owns the
 * store until another one takes over.
 * @param onLost called once, when another process has taken over
 */
export function keepPossession(options: PossessionOptions, epoch: number, onLost: () => void): () => void {
  const { connection, statements, session, leaseMs, clock } = options
  let timer: unknown
  let isEnded = false
  const renew = async (): Promise<void> => {
    try {
      const renewed = await connection.query(statements.renew, [session, leaseMs, epoch])
      if (renewed.length === 0 && !isEnded) {
        onLost()
        return
      }
    } catch {
      // The server cannot be reached. The next write reports the error.
    }
    if (!isEnded) wait()
  }
  const wait = (): void => {
    timer = clock.setTimeout(() => void renew(), leaseMs / 3, { name: 'renewal of the lease of a store', kind: 'poll' })
    unrefTimer(timer)
  }
  wait()
  return () => {
    isEnded = true
    clock.clearTimeout(timer)
  }
}

export const lostError = (name: string, why: string): StoreError =>
  new StoreError('STORE_LOST', `${name}: ${why}. This process can no longer write to the store: end it.`)

export const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => clock.setTimeout(resolve, ms, { name: 'wait for a store', kind: 'poll' }))

const holder = (): string => `process ${process.pid} on ${hostname()}`
