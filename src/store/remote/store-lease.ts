/**
 * The ownership of a store: a row with an epoch and an expiry time, measured by the clock of the server. Each owner has its own epoch, and writes only
 * under this epoch. A process that was stopped for longer than its lease can therefore write nothing after another process has taken over.
 */
import { hostname } from 'node:os'
import { sleep } from '../../system/abort.js'
import { elapsedMs, unrefTimer, type Clock } from '../../system/clock.js'
import { StoreError, StoreInUseError } from '../store-errors.js'
import type { StoreDatabase } from './store-database.js'

/** The maximum time between two checks of a lease that is about to expire, in ms. */
const LOOK_MS = 1000

/**
 * When a lease is renewed, and when an owner that stops gives it up, as parts of its length. After that its runs have the rest of the lease to end. An
 * owner that stops renews more often, so that one failed renewal does not end its runs.
 */
const PART = { renewal: 1 / 3, renewalOfStopping: 1 / 6, giveUp: 1 / 2 } as const

export interface StoreLeaseOptions {
  readonly database: StoreDatabase
  readonly session: string
  readonly leaseMs: number
  readonly clock: Clock
  /** What the owner does when it cannot renew its lease. */
  readonly whenLeaseExpires: 'goOn' | 'stop'
  /** The name of the store in errors. */
  readonly name: string
}

/** The epoch of this owner, and the batch number of its next write. */
export interface StoreLease {
  readonly epoch: number
  readonly batch: number
  /** When the lease was requested, as `elapsedMs` of the clock. Its end on the server is at least `leaseMs` later. */
  readonly since: number
}

/**
 * Takes ownership. While the lease of another owner has not expired, it waits, because that owner may be dead.
 * @throws STORE_IN_USE when the other owner renews its lease
 */
export async function takeStoreLease(options: StoreLeaseOptions): Promise<StoreLease> {
  const { database, session, leaseMs, clock, name } = options
  let until: number | undefined
  for (;;) {
    const since = elapsedMs(clock)
    const taken = await database.take(session, leaseMs, holder())
    if (taken !== undefined) return { ...taken, since }
    const owner = await database.owner(session)
    if (owner === undefined) continue
    if (until !== undefined && owner.until !== until) {
      throw new StoreInUseError(name, undefined, { owner: owner.holder, instead: 'session or schema' })
    }
    until = owner.until
    await pause(clock, Math.min(Math.max(owner.leftMs, 0) + 10, LOOK_MS))
  }
}

export interface KeptLease {
  /** Called when a statement that was sent at this time (`elapsedMs`) has extended the lease. */
  readonly extended: (since: number) => void
  readonly stop: () => void
}

/**
 * Renews a lease. A failed renewal is repeated, also after an outage of the server: this process owns the store until another one takes over, unless
 * it is to stop before that.
 * @param onLost called once, with the reason, when another process has taken over, or may soon do so
 */
export function keepStoreLease(
  options: StoreLeaseOptions,
  { epoch, since }: StoreLease,
  onLost: (why: string) => void,
): KeptLease {
  const { database, session, leaseMs, clock, whenLeaseExpires } = options
  const stops = whenLeaseExpires === 'stop'
  let latest = since
  let timer: unknown
  let expiry: unknown
  let isEnded = false
  const stop = (): void => {
    isEnded = true
    clock.clearTimeout(timer)
    clock.clearTimeout(expiry)
  }
  const lose = (why: string): void => {
    if (isEnded) return
    stop()
    onLost(why)
  }
  const extended = (at: number): void => {
    latest = Math.max(latest, at)
  }
  const renew = async (): Promise<void> => {
    try {
      const sent = elapsedMs(clock)
      if (await database.renew(session, leaseMs, epoch)) extended(sent)
      else lose('another owner has taken over')
    } catch {
      // The server cannot be reached. The next write reports the error.
    }
    if (!isEnded) wait()
  }
  const wait = (): void => {
    const ms = leaseMs * (stops ? PART.renewalOfStopping : PART.renewal)
    timer = clock.setTimeout(() => void renew(), ms, { name: 'renewal of the lease of a store', kind: 'poll' })
    unrefTimer(timer)
  }
  const watch = (): void => {
    const left = latest + leaseMs * PART.giveUp - elapsedMs(clock)
    if (left <= 0) {
      lose('its lease could not be renewed, and this process is to stop before another owner starts')
      return
    }
    // The timer does not keep the process alive: without a run, nothing has to be stopped.
    expiry = clock.setTimeout(watch, left, { name: 'expiry of the lease of a store', kind: 'deadline' })
    unrefTimer(expiry)
  }
  wait()
  if (stops) watch()
  return { extended, stop }
}

export const lostError = (name: string, why: string): StoreError =>
  new StoreError('STORE_LOST', `${name}: ${why}. This process can no longer write to the store: end it.`)

/** @throws the reason of the signal, when it aborts */
export const pause = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  sleep(clock, ms, signal, { name: 'wait for a store', kind: 'poll' })

const holder = (): string => `process ${process.pid} on ${hostname()}`
