/**
 * A store on a server. It survives the loss of the machine on which its owner runs.
 *
 * When the connection breaks during a write, it is unknown whether the write was committed. The write is then sent again with the same batch number,
 * until the server answers. A batch number that was used has no effect. So a write that resolves is stored, and a write that rejects is not.
 */
import { systemClock, type Clock } from '../../system/clock.js'
import { aClock, anObject, aText, numberFrom, oneOf, type OptionTypes } from '../../protocol/option-checks.js'
import { retentionLimits, type RetentionLimits } from '../history/task-history.js'
import type { OpenStore, RemoteStore } from '../open-store.js'
import { StoreError } from '../store-errors.js'
import { OPENED_TABLES, type StoreContents } from '../store.js'
import { OwnedRows } from './owned-rows.js'
import { remoteHistory } from './remote-history.js'
import { kindOfTurns, toContents } from './rows.js'
import type { StoreDatabase } from './store-database.js'
import { keepStoreLease, takeStoreLease, type StoreLease, type StoreLeaseOptions } from './store-lease.js'

/** The options of every store on a server. */
export interface RemoteStoreOptions {
  /** The name of the session. A schema can have several sessions, and each has one owner at a time. Default `default`. */
  readonly session?: string
  /** How long the store stays reserved after its owner died, in ms. A live owner renews the lease before that. Default 15000; at least 500. */
  readonly leaseMs?: number
  /**
   * What happens to the tasks of an owner that cannot reach the server. `goOn`: they run on, beside those of another owner that takes over meanwhile.
   * `stop`: they are cancelled half of `leaseMs` after the lease was last renewed, and the store is lost (`STORE_LOST`). Their runs then have the other
   * half to end before another owner can start, so it must be longer than their `graceMs`. Default `goOn`.
   */
  readonly whenLeaseExpires?: 'goOn' | 'stop'
  /** The limits of the history. With `maxTasks: 0` there is no history. */
  readonly retention?: RetentionLimits
  /** The source of time. Default: the platform's clock. */
  readonly clock?: Clock
}

const DEFAULTS = { session: 'default', leaseMs: 15_000, whenLeaseExpires: 'goOn' } as const

export const remoteOptionTypes: OptionTypes<RemoteStoreOptions> = {
  session: aText('a text of 1 to 512 characters without NUL', /^[^\0]{1,512}$/),
  leaseMs: numberFrom(500, 'a number from 500 to 86400000', 86_400_000),
  whenLeaseExpires: oneOf(['goOn', 'stop']),
  retention: anObject,
  clock: aClock,
}

/**
 * Creates the store of a session in a database.
 * @param given the options, which the caller has checked
 * @param access prepares access to the database; its first operation connects
 * @throws INVALID_INPUT for an invalid limit of the history
 */
export function remoteStore(given: RemoteStoreOptions, access: () => StoreDatabase): RemoteStore {
  const limits = retentionLimits(given.retention)
  const options = { ...DEFAULTS, clock: systemClock, ...given }
  const name = access().nameOf(options.session)
  return { name, connect: () => connect({ ...options, database: access(), name }, limits) }
}

async function connect(options: StoreLeaseOptions, limits: Required<RetentionLimits>): Promise<OpenStore> {
  const { database, session, name } = options
  try {
    await database.prepare()
    const taken = await takeStoreLease(options)
    try {
      const contents = toContents(await database.read(session, OPENED_TABLES), name)
      const history = limits.maxTasks === 0 ? undefined : remoteHistory({ ...options, limits })
      return { ...toOpenStore(options, taken, contents), history }
    } catch (error) {
      await release(options, taken.epoch)
      throw error
    }
  } catch (error) {
    await database.close()
    throw database.toStoreError(name, error)
  }
}

function toOpenStore(options: StoreLeaseOptions, taken: StoreLease, found: StoreContents): OpenStore {
  const { database, session, name } = options
  const rows = new OwnedRows(options, taken)
  const lease = keepStoreLease(options, taken, (why) => rows.lose(why))
  rows.onExtended = lease.extended
  let contents: StoreContents | undefined = found
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    lease.stop()
    rows.close()
    await release(options, taken.epoch)
    await database.close()
  }
  return {
    name,
    directory: undefined,
    lost: rows.lost,
    open: () => {
      if (contents === undefined) {
        throw new StoreError(
          'STORE_IN_USE',
          `${name}: this store object was used by a manager before. Create a new one.`,
        )
      }
      const first = contents
      contents = undefined
      return first
    },
    write: (changes, onDelay) =>
      closing === undefined
        ? rows.write(changes, onDelay)
        : Promise.reject(new StoreError('STORE_CLOSED', `${name}: the store is not open.`)),
    turns: {
      read: async (owner, limit = Infinity) => {
        try {
          if (owner === undefined) return toContents(await database.read(session), name).turns
          return toContents(await database.last(session, kindOfTurns(owner), limit), name).turns
        } catch (error) {
          throw database.toStoreError(name, error)
        }
      },
    },
    acceptance: { accept: rows.accept, isCommitted: rows.isCommitted },
    close: () => (closing ??= close()),
  }
}

/** Ends the lease, so that the next owner need not wait. */
async function release({ database, session }: StoreLeaseOptions, epoch: number): Promise<void> {
  try {
    await database.release(session, epoch)
  } catch {
    // The server cannot be reached. The lease expires by itself.
  }
}
