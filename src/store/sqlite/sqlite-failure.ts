/** Maps SQLite's errors to errors of this package (https://sqlite.org/rescode.html). */
import { StoreError, type StoreErrorCode } from '../store-errors.js'

/** SQLite's primary result codes. */
export const SQLITE = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const

const REASONS: Readonly<Record<number, readonly [StoreErrorCode, string]>> = {
  [SQLITE.readOnly]: ['STORE_READ_ONLY', 'it cannot be written: the file or its folder is read-only'],
  [SQLITE.ioError]: ['STORE_FAILED', 'reading or writing it failed'],
  [SQLITE.corrupt]: ['STORE_DAMAGED', 'its content is damaged'],
  [SQLITE.full]: ['STORE_FULL', 'the disk is full'],
  [SQLITE.cannotOpen]: ['STORE_FAILED', 'it cannot be opened'],
  [SQLITE.notADatabase]: ['STORE_INVALID', 'it is not an SQLite database'],
}

/** Returns the primary result code of an error of SQLite; undefined for any other error. */
export function resultCode(error: unknown): number | undefined {
  const code = (error as { readonly errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/** Whether the file, its disk or another process caused an error. Otherwise the row that was written did. */
export function isOfFile(error: unknown): boolean {
  const code = resultCode(error)
  return code !== undefined && Object.values<number>(SQLITE).includes(code)
}

/** Converts an error of SQLite or of the file system to a `StoreError` that names the file. */
export function toStoreError(file: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const system = (error as { readonly code?: unknown } | null)?.code
  const known =
    REASONS[resultCode(error) ?? -1] ??
    (system === 'EACCES' || system === 'EROFS' || system === 'EPERM' ? REASONS[SQLITE.readOnly] : undefined) ??
    (system === 'ENOSPC' ? REASONS[SQLITE.full] : undefined)
  const [code, reason] = known ?? (['STORE_FAILED', 'it failed'] as const)
  const detail = error instanceof Error ? ` (${error.message})` : ''
  return new StoreError(code, `${file}: ${reason}${detail}.`, { cause: error })
}
