/** An unknown name is answered with the known one that was probably meant. */
import { describe, expect, it } from 'vitest'
import { expectedName, nearestName } from '../../../src/protocol/nearest-name.js'

const known = ['maxAsyncTasks', 'graceMs', 'clock', 'id']

describe('the nearest name', () => {
  it.each([
    ['maxAsyncTask', 'maxAsyncTasks'],
    ['MAXASYNCTASKS', 'maxAsyncTasks'],
    ['gracems', 'graceMs'],
    ['graceMS', 'graceMs'],
    ['clokc', 'clock'],
    ['Id', 'id'],
  ])('of %s is %s', (name, nearest) => {
    expect(nearestName(name, known)).toBe(nearest)
  })

  it.each(['timeout', 'x'.repeat(1_000_000), '', 'colours'])('of another name is none', (name) => {
    expect(nearestName(name, ['maxAsyncTasks', 'graceMs'])).toBeUndefined()
  })

  it('is the one with the fewest edits', () => {
    expect(nearestName('retentionM', ['retention', 'retentionMs', 'retainM'])).toBe('retention')
    expect(nearestName('maxWaitMz', ['maxWait', 'maxWaitMs'])).toBe('maxWaitMs')
  })
})

it('without a near name, all names are listed', () => {
  expect(expectedName('graceMz', known)).toBe('no such name; the nearest is graceMs')
  expect(expectedName('somethingElse', known)).toBe('one of the names maxAsyncTasks, graceMs, clock, id')
  expect(expectedName('x', [])).toBe('no such name; there are none')
})
