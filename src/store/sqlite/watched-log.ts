/**
 * Watches the write-ahead log of an open store. If the log is removed or truncated, SQLite keeps writing to it without an error, and the next
 * process would not find these writes.
 */
import { statSync } from 'node:fs'
import { StoreError } from '../store-errors.js'
import type { Database } from './driver.js'

/** The size of the header of the log, and of the header of a frame in it, in bytes (https://sqlite.org/fileformat.html#the_write_ahead_log). */
const HEADER = { log: 32, frame: 24 } as const

interface LogState {
  readonly identity: string
  readonly bytes: number
}

export class WatchedLog {
  readonly #file: string
  readonly #database: Database
  #known: LogState | undefined

  /** @param database a connection that has written */
  constructor(file: string, database: Database) {
    this.#file = `${file}-wal`
    this.#database = database
    this.note()
  }

  /** Remembers the state of the log. Call this after each write. */
  note(): void {
    this.#known = this.#look()
  }

  /** @throws StoreError `STORE_LOST` when the log was removed, replaced or truncated */
  check(): void {
    const known = this.#known
    const now = this.#look()
    const what =
      now === undefined
        ? 'removed'
        : now.identity !== known?.identity
          ? 'replaced by another file'
          : now.bytes < known.bytes && now.bytes < this.#bytesInUse()
            ? 'cut'
            : undefined
    if (what === undefined) return
    throw new StoreError(
      'STORE_LOST',
      `${this.#file}: the log was ${what} while the store was open. End this process normally (not with SIGKILL): closing the store saves its content.`,
    )
  }

  #look(): LogState | undefined {
    const stats = statSync(this.#file, { throwIfNoEntry: false, bigint: true })
    return stats && { identity: `${stats.dev}:${stats.ino}`, bytes: Number(stats.size) }
  }

  /** Returns how much of the log SQLite still needs, in bytes. It is 0 when another connection has moved all content to the database. */
  #bytesInUse(): number {
    const { log } = this.#database.prepare('PRAGMA wal_checkpoint(NOOP)').get() ?? {}
    const { page_size: page } = this.#database.prepare('PRAGMA page_size').get() ?? {}
    return Number(log) <= 0 ? 0 : HEADER.log + Number(log) * (HEADER.frame + Number(page))
  }
}
