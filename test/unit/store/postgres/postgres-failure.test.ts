import { expect, it } from 'vitest'
import {
  isAnswer,
  isConflict,
  NotSentError,
  outcomeOf,
  toStoreError,
} from '../../../../src/store/postgres/postgres-failure.js'
import { StoreError } from '../../../../src/store/index.js'

const failure = (fields: object): Error => Object.assign(new Error('why'), fields)

it.each([
  ['28P01', 'STORE_UNAVAILABLE', 'the user or the password is wrong'],
  ['3D000', 'STORE_UNAVAILABLE', 'there is no such database'],
  ['42501', 'STORE_READ_ONLY', 'the role has no right'],
  ['53100', 'STORE_FULL', "the server's disk is full"],
  ['25006', 'STORE_READ_ONLY', 'a replica'],
  ['57P01', 'STORE_UNAVAILABLE', 'has ended the connection'],
  ['XX000', 'STORE_FAILED', 'the server refused a statement'],
  ['08006', 'STORE_UNAVAILABLE', 'there is no connection'],
  ['ECONNREFUSED', 'STORE_UNAVAILABLE', 'nothing listens'],
  ['ECONNRESET', 'STORE_UNAVAILABLE', 'there is no connection'],
])('says what %s means', (code, storeCode, text) => {
  const error = toStoreError('the store', failure({ code }))
  expect(error.code).toBe(storeCode)
  expect(error.message).toContain(`the store: `)
  expect(error.message).toContain(text)
  expect(error.message).toContain('(why).')
})

it('passes its own errors on', () => {
  const error = new StoreError('STORE_LOST', 'lost')
  expect(toStoreError('the store', error)).toBe(error)
})

it('says why a statement was not sent', () => {
  const error = new NotSentError('not sent', { cause: new RangeError('Invalid string length') })
  expect(toStoreError('the store', error)).toMatchObject({
    code: 'STORE_FAILED',
    message: 'the store: a statement is too large to be sent (Invalid string length).',
  })
})

it.each([
  // The words of a server are in its language: only the code counts.
  ['42501', 'FEHLER', 'had no effect'],
  ['23505', 'ERROR', 'had no effect'],
  ['57014', undefined, 'had no effect'],
  ['AB123', undefined, 'had no effect'],
  ['53100', 'ERROR', 'may have ended its session'],
  ['53100', 'PANIC', 'may have ended its session'],
  ['57P01', 'SCHWERWIEGEND', 'may have ended its session'],
  ['58030', 'PANIC', 'may have ended its session'],
  ['XX000', 'ERROR', 'may have ended its session'],
  ['08P01', 'ERROR', 'is unknown'],
  ['08006', 'FATAL', 'is unknown'],
  ['40003', 'ERROR', 'is unknown'],
  ['EPIPE', undefined, 'is unknown'],
  ['ECONNRESET', undefined, 'is unknown'],
  [undefined, 'ERROR', 'is unknown'],
])('a statement that fails with the code %s (%s) %s', (code, severity, outcome) => {
  const error = failure({ code, severity })
  expect(outcomeOf(error) === 'refused').toBe(outcome === 'had no effect')
  expect(isAnswer(error)).toBe(outcome !== 'is unknown')
})

it.each([undefined, null, 'text', 5])('takes %s for no answer', (error) => {
  expect([isAnswer(error), outcomeOf(error), isConflict(error)]).toEqual([false, 'unknown', false])
})

it('knows the conflicts that repeating a statement resolves', () => {
  const conflicts = ['40001', '40P01', '40003', '23505'].filter((code) => isConflict(failure({ code })))
  expect(conflicts).toEqual(['40001', '40P01'])
})
