/** What the records of an earlier process become: their order, their numbers, and what is still owed for them. */
import { expect, it } from 'vitest'
import { toRestoredRecords } from '../../../src/async-tasks/recovery/restoring.js'
import { InvalidInputError } from '../../../src/errors.js'
import type { RestorableRecord } from '../../../src/protocol/record-fields.js'

const NOW = 9_000
const base = (id: string, more: Partial<RestorableRecord> = {}): RestorableRecord => ({
  id,
  subagentName: 'agent',
  goalPrompt: 'goal',
  status: 'completed',
  launchedAt: 100,
  ...more,
})
const restore = (...records: RestorableRecord[]) => toRestoredRecords(records, NOW)
const only = (record: RestorableRecord) => restore(record)[0]

it('come in the order in which they ended, and those that were lost after them, with later numbers', () => {
  const restored = restore(
    base('lost', { status: 'running', seq: 3 }),
    base('by launch', { launchedAt: 50 }),
    base('by number', { seq: 20, completedAt: 1 }),
    base('by end', { completedAt: 40 }),
    base('waited', { status: 'queued' }),
    base('first', { seq: 2 }),
  )
  expect(restored.map(({ id, seq }) => [id, seq])).toEqual([
    ['first', 2],
    ['by number', 20],
    ['by end', 21],
    ['by launch', 22],
    ['lost', 23],
    ['waited', 24],
  ])
  expect(restored.every((record) => Object.isFrozen(record))).toBe(true)
})

it.each<[string, Partial<RestorableRecord>, string]>([
  ['a completed one', {}, 'owed'],
  ['a failed one', { status: 'failed' }, 'owed'],
  ['a cancelled one', { status: 'cancelled' }, 'none'],
  ['a cancelled one that was owed', { status: 'cancelled', delivery: 'owed' }, 'owed'],
  ['one in a message', { delivery: 'leased' }, 'owed'],
  ['one in a message that was delivered before', { delivery: 'leased', notifiedAt: 5 }, 'owed'],
  ['one that was delivered at some time', { notifiedAt: 5 }, 'delivered'],
  ['a cancelled one that was delivered at some time', { status: 'cancelled', notifiedAt: 5 }, 'delivered'],
  ['one that is owed once more', { delivery: 'owed', notifiedAt: 5 }, 'owed'],
  ['one that is owed to nobody', { delivery: 'none' }, 'none'],
  ['a lost one, whatever it says', { status: 'running', delivery: 'none', notifiedAt: 5 }, 'owed'],
])('%s is then owed, delivered or neither', (_what, more, delivery) => {
  expect(only(base('a', more))?.delivery).toBe(delivery)
})

it('keep their fields, and those that are lost fail with a code', () => {
  const fields = {
    owner: 'me',
    timeoutMs: 5,
    parentId: 'p',
    depth: 1,
    attempt: 2,
    startedAt: 110,
    isRepeat: true,
    budget: { tokens: 3 },
    spent: { tokens: 2 },
    notifiedAt: 7,
    progress: { progress: 1 },
  }
  const common = { id: 'a', subagentName: 'agent', goalPrompt: 'goal', launchedAt: 100, ...fields }
  expect(only(base('a', { ...fields, seq: 4, completedAt: 300, output: { x: 1 } }))).toEqual({
    ...common,
    status: 'completed',
    seq: 4,
    completedAt: 300,
    delivery: 'delivered',
    output: { x: 1 },
  })
  const failed = { status: 'failed', error: 'e', errorName: 'N', errorCode: 'C', lateOutput: { y: 2 } } as const
  expect(only(base('a', { ...fields, ...failed, seq: 4 }))).toEqual({
    ...common,
    ...failed,
    seq: 4,
    completedAt: NOW,
    delivery: 'delivered',
  })
  const lost = only(base('a', { ...fields, status: 'running', completedAt: undefined }))
  expect(lost).toMatchObject({
    ...common,
    status: 'failed',
    errorCode: 'INTERRUPTED',
    delivery: 'owed',
    completedAt: NOW,
  })
  expect(lost?.error).toContain('ended before the task did')
  expect(only(base('a', { status: 'failed' }))).toMatchObject({ error: 'The task failed.' })
  expect(only(base('a', { status: 'failed' }))).not.toHaveProperty('errorCode')
  expect(only(base('a', { status: 'queued', error: 'why' }))).toMatchObject({ error: 'why', errorCode: 'INTERRUPTED' })
  expect(Object.isFrozen(only(base('a', fields))?.progress)).toBe(true)
})

it('are refused when two have the same id, with the place of the second', () => {
  const thrown = (() => {
    try {
      restore(base('a'), base('b'), base('a'))
      return undefined
    } catch (error) {
      return error
    }
  })()
  expect(thrown).toBeInstanceOf(InvalidInputError)
  expect((thrown as InvalidInputError).field).toBe('records[2].id')
})
