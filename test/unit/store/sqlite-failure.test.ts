/** Errors of SQLite and of the file system as errors of a store. */
import { expect, it } from 'vitest'
import { toStoreError } from '../../../src/store/sqlite/sqlite-failure.js'
import { StoreError } from '../../../src/store/index.js'

const withCode = (fields: object): Error => Object.assign(new Error('reason'), fields)

it.each([
  [{ errcode: 13 }, 'STORE_FULL', 'the disk is full (reason)'],
  [{ errcode: 8 | (3 << 8) }, 'STORE_READ_ONLY', 'it cannot be written'],
  [{ errcode: 778 }, 'STORE_FAILED', 'reading or writing it failed'],
  [{ errcode: 11 }, 'STORE_DAMAGED', 'its content is damaged'],
  [{ errcode: 14 }, 'STORE_FAILED', 'it cannot be opened'],
  [{ errcode: 26 }, 'STORE_INVALID', 'it is not an SQLite database'],
  [{ code: 'ENOSPC' }, 'STORE_FULL', 'the disk is full'],
  [{ code: 'EROFS' }, 'STORE_READ_ONLY', 'it cannot be written'],
  [{ code: 'EACCES' }, 'STORE_READ_ONLY', 'it cannot be written'],
  [{ code: 'EPERM' }, 'STORE_READ_ONLY', 'it cannot be written'],
  [{ code: 'EIO' }, 'STORE_FAILED', 'it failed (reason)'],
  [{}, 'STORE_FAILED', 'it failed (reason)'],
])('K10: %j is %s', (fields, code, words) => {
  const cause = withCode(fields)
  const error = toStoreError('tasks.db', cause)
  expect(error).toMatchObject({ code, cause })
  expect(error.message).toContain(`tasks.db: ${words}`)
})

it('K10: what is no error at all has a reason too, and a StoreError stays as it is', () => {
  expect(toStoreError('tasks.db', 'text')).toMatchObject({
    code: 'STORE_FAILED',
    message: 'tasks.db: it failed.',
    cause: 'text',
  })
  const error = new StoreError('STORE_CLOSED', 'closed')
  expect(toStoreError('tasks.db', error)).toBe(error)
})
