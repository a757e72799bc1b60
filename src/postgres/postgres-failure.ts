/** Maps errors of PostgreSQL to errors of this package (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
import { StoreError, type StoreErrorCode } from '../store/store-errors.js'

const REASONS: Readonly<Record<string, readonly [StoreErrorCode, string]>> = {
  '25006': ['STORE_READ_ONLY', 'the server accepts no writes: it is a replica, or is set to read-only'],
  '28000': ['STORE_UNAVAILABLE', 'the server does not admit this user'],
  '28P01': ['STORE_UNAVAILABLE', 'the user or the password is wrong'],
  '3D000': ['STORE_UNAVAILABLE', 'there is no such database'],
  '42501': [
    'STORE_READ_ONLY',
    'the role has no right to do that: it needs CREATE on the database, or a schema of its own',
  ],
  '53100': ['STORE_FULL', "the server's disk is full"],
  '53300': ['STORE_UNAVAILABLE', 'the server accepts no more connections'],
  '57P03': ['STORE_UNAVAILABLE', 'the server is starting or ending'],
}

/** The texts for errors that come without a reply of the server. */
const NO_ANSWER: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at this address',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
}

/** There is no connection, and `cause` is the reason. The statement was not sent. */
export class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError'
}

/**
 * Whether an error is the server's reply to a statement, which then had no effect. An error that ends the connection does not count, because the server
 * may have committed the statement before it.
 */
export function isAnswer(error: unknown): boolean {
  return (error as { readonly severity?: unknown } | null)?.severity === 'ERROR'
}

/** Converts an error of the server or of the connection to a `StoreError` that names the store. */
export function toStoreError(name: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  if (error instanceof NotConnectedError) return toStoreError(name, error.cause)
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  const key = String(code)
  const [storeCode, reason] =
    REASONS[key] ??
    (isAnswer(error)
      ? (['STORE_FAILED', 'the server refused a statement'] as const)
      : (['STORE_UNAVAILABLE', NO_ANSWER[key] ?? 'there is no connection to the server'] as const))
  const detail = typeof message === 'string' && message !== '' ? ` (${message})` : ''
  return new StoreError(storeCode, `${name}: ${reason}${detail}.`, { cause: error })
}
