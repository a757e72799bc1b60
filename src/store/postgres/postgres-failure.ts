/**
 * Maps errors of PostgreSQL to errors of this package (https://www.postgresql.org/docs/current/errcodes-appendix.html). Only the code of an error
 * (SQLSTATE) is read: its other fields are in the language of the server.
 */
import { constants } from 'node:os'
import type { Outcome } from '../remote/store-database.js'
import { StoreError, type StoreErrorCode } from '../store-errors.js'

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
  '57P01': ['STORE_UNAVAILABLE', 'the server has ended the connection'],
  '57P02': ['STORE_UNAVAILABLE', 'the server has crashed'],
  '57P03': ['STORE_UNAVAILABLE', 'the server is starting or ending'],
  '57P05': ['STORE_UNAVAILABLE', 'the server has ended an idle connection'],
}

/** The texts for errors that come without a reply of the server. */
const NO_ANSWER: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at this address',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
}

/** Codes that do not come from the server that ran the statement (08: PgBouncer reports a lost server with them), or that leave the outcome open. */
const IS_UNKNOWN = /^(?:08|40003)/

/**
 * Codes that may also end the process of the server (FATAL, PANIC), and that possibly after a commit: resources, an operator, the system, an internal
 * error. 57014 is not one of them: it cancels a statement.
 */
const MAY_END_SESSION = /^(?:53|57P|58|F0|XX)/

/** Codes of a transaction that had no effect because of another transaction, and may be repeated at once. */
const IS_CONFLICT = /^40(?:001|P01)$/

/** The statement was not sent, and `cause` is the reason. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError'
}

/** Returns the SQLSTATE of an error; undefined when it is not a reply of a server. Codes of the operating system, such as EPIPE, are similar. */
function sqlState(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code
  return typeof code === 'string' && /^[\dA-Z]{5}$/.test(code) && !(code in constants.errno) ? code : undefined
}

/** Whether an error is the reply of the server to a statement. */
export function isAnswer(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !IS_UNKNOWN.test(state)
}

export function outcomeOf(error: unknown): Outcome {
  if (error instanceof NotSentError) return 'notSent'
  if (!isAnswer(error)) return 'unknown'
  return MAY_END_SESSION.test(String(sqlState(error))) ? 'inDoubt' : 'refused'
}

/** Whether a statement had no effect because of another transaction, so that it may succeed when it is repeated. */
export const isConflict = (error: unknown): boolean => IS_CONFLICT.test(String(sqlState(error)))

/** Converts an error of the server or of the connection to a `StoreError` that names the store. */
export function toStoreError(name: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  if (error instanceof NotSentError) return toStoreError(name, error.cause)
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown }
  const [storeCode, reason] = REASONS[String(code)] ?? otherReason(error, String(code))
  const detail = typeof message === 'string' && message !== '' ? ` (${message})` : ''
  return new StoreError(storeCode, `${name}: ${reason}${detail}.`, { cause: error })
}

function otherReason(error: unknown, code: string): readonly [StoreErrorCode, string] {
  if (isAnswer(error)) return ['STORE_FAILED', 'the server refused a statement']
  if (error instanceof RangeError) return ['STORE_FAILED', 'a statement is too large to be sent']
  return ['STORE_UNAVAILABLE', NO_ANSWER[code] ?? 'there is no connection to the server']
}
