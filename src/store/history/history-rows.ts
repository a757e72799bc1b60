/** Rows of a history in a database. */
import { crc32 } from 'node:zlib'
import { textOf } from '../row-text.js'
import { StoreError } from '../store-errors.js'
import { wordsIn } from './search-words.js'
import type { PastTask } from './task-history.js'

/** A task in a database, with texts that every database can hold. */
export interface HistoryRow {
  readonly kind: PastTask['kind']
  readonly id: string
  readonly owner: string
  readonly name: string
  readonly status: string
  readonly completedAt: number
  /** The size of `body` in bytes. */
  readonly bytes: number
  /** The words by which the task is found, separated by spaces. */
  readonly words: string
  /** The task as JSON, and its CRC-32. */
  readonly body: string
  readonly checksum: number
}

/** @param id the id in the form that the database can hold */
export function toHistoryRow(task: PastTask, id: string): HistoryRow {
  const { kind, owner, name, status, completedAt, record } = task
  const body = JSON.stringify(task)
  return {
    kind,
    id,
    owner: textOf(owner),
    name: textOf(name),
    status: textOf(status),
    completedAt,
    bytes: Buffer.byteLength(body),
    words: wordsIn(record).join(' '),
    body,
    checksum: crc32(body),
  }
}

/**
 * @param name the name of the store or its file in the error
 * @throws StoreError for a row that differs from what was written
 */
export function toPastTask({ id, body, checksum }: Readonly<Record<string, unknown>>, name: string): PastTask {
  if (typeof body === 'string' && crc32(body) === checksum) return JSON.parse(body) as PastTask
  throw new StoreError('STORE_DAMAGED', `${name}: the row ${JSON.stringify(id)} of the history is damaged.`)
}
