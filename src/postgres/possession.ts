/**
 * The ownership of a store: a row with an epoch and an expiry time, by the clock of the server. Each owner has its own epoch and writes only under it.
 * A process that was stopped for longer than its lease therefore writes nothing after another one has taken over.
 */
import { hostname } from 'node:os'
import { unrefTimer, type Clock } from '../clock.js'
import { StoreError, StoreInUseError } from '../store/store-errors.js'
import type { Connection, Row } from './connection.js'
import type { Statements } from './statements.js'

/** The maximum wait between two checks of an expiring lease, in ms. */
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

/** The epoch of this owner, and the number of its next write. */
export interface Tenure {
  readonly epoch: number
  readonly batch: number
}

/**
 * Takes ownership. While another owner's lease has not expired it waits, because that owner may be dead.
 * @throws StoreInUseError when that owner renews its lease
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

/** The row of the current owner; undefined before the first one. */
export async function readOwner({ connection, statements, session }: PossessionOptions): Promise<Row | undefined> {
  const [owner] = await connection.query(statements.owner, [session])
  return owner
}

/**
 * Renews the lease until the returned function is called. A failed renewal is repeated: until another process takes over, this one owns the store, also
 * after an outage of the server.
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
      // The server is away. The next write reports it.
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
  new StoreError('STORE_LOST', `${name}: ${why}. Nothing is written any more; end this process.`)

export const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => clock.setTimeout(resolve, ms, { name: 'wait for a store', kind: 'poll' }))

const holder = (): string => `process ${process.pid} on ${hostname()}`
