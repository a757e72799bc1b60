import { expect, it } from 'vitest'
import { isAnswer, toStoreError } from '../../../src/postgres/postgres-failure.js'
import { StoreError } from '../../../src/store/index.js'

const failure = (fields: object): Error => Object.assign(new Error('why'), fields)

it.each([
  ['28P01', 'FATAL', 'STORE_UNAVAILABLE', 'the user or the password is wrong'],
  ['3D000', 'FATAL', 'STORE_UNAVAILABLE', 'there is no such database'],
  ['42501', 'ERROR', 'STORE_READ_ONLY', 'the role has no right'],
  ['53100', 'ERROR', 'STORE_FULL', "the server's disk is full"],
  ['25006', 'ERROR', 'STORE_READ_ONLY', 'a replica'],
  ['XX000', 'ERROR', 'STORE_FAILED', 'the server refused a statement'],
  ['ECONNREFUSED', undefined, 'STORE_UNAVAILABLE', 'nothing listens'],
  ['ECONNRESET', undefined, 'STORE_UNAVAILABLE', 'there is no connection'],
])('says what %s means', (code, severity, storeCode, text) => {
  const error = toStoreError('the store', failure({ code, severity }))
  expect(error.code).toBe(storeCode)
  expect(error.message).toContain(`the store: `)
  expect(error.message).toContain(text)
  expect(error.message).toContain('(why).')
})

it('passes its own errors on', () => {
  const error = new StoreError('STORE_LOST', 'lost')
  expect(toStoreError('the store', error)).toBe(error)
})

it('takes only an error that ends a statement for an answer', () => {
  expect([{ severity: 'ERROR' }, { severity: 'FATAL' }, { code: 'EPIPE' }, undefined].map(isAnswer)).toEqual([
    true,
    false,
    false,
    false,
  ])
})
