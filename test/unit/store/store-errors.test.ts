/** What the errors of stores say. */
import { StoreError } from 'agent-tasks/store'
import { expect, it } from 'vitest'
import { rowError, StoreInUseError } from '../../../src/store/store-errors.js'

it('the error of a store has its name and code, and a row only where one is the reason', () => {
  const error = new StoreError('STORE_FULL', 'no room')
  expect([error.name, error.code, error.message, error.row]).toEqual(['StoreError', 'STORE_FULL', 'no room', undefined])
})

it('the error of a row names it, and has what failed as its cause', () => {
  const row = { table: 'tasks', id: 'a"b' } as const
  const cause = new TypeError('no JSON')
  const error = rowError('tasks.db', row, cause)
  expect(error).toMatchObject({
    code: 'STORE_FAILED',
    message: 'tasks.db: the row "a\\"b" of table tasks cannot be written (no JSON).',
    row,
  })
  expect(error.cause).toBe(cause)
  expect(rowError('tasks.db', row, 'a text').message).toBe(
    'tasks.db: the row "a\\"b" of table tasks cannot be written.',
  )
})

it('the error of a store in use names its process, if that is known', () => {
  const known = new StoreInUseError('tasks.db', 7)
  expect([known.name, known.code, known.pid]).toEqual(['StoreError', 'STORE_IN_USE', 7])
  expect(new StoreInUseError('tasks.db', process.pid).message).toBe(
    `tasks.db is in use by this process (${process.pid}): it has opened it already. Close that store first, or use another file.`,
  )
  expect(known.message).toBe('tasks.db is in use by process 7. End it, or use another file.')
  expect(new StoreInUseError('tasks.db', undefined).message).toBe(
    'tasks.db is in use by another process. End it, or use another file.',
  )
})
