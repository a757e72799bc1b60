/** An unknown name is answered with the known one that was probably meant. */
import { describe, expect, it } from 'vitest'
import { expectedName, nearestName } from '../../../src/data/nearest-name.js'

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

  it.each([
    ['cmd', 'command'],
    ['timeout', 'timeoutMs'],
    ['prompt', 'goalPrompt'],
    ['max', 'maxWait'],
    ['CWD', 'cwd'],
    ['cw', 'cwd'],
  ])('of a part or an abbreviation, %s, is the shortest name that has it', (name, nearest) => {
    const names = ['cwd', 'maxWaitMs', 'maxWait', 'command', 'goalPrompt', 'timeoutMs']
    expect(nearestName(name, names)).toBe(nearest)
  })

  it.each(['timeout', 'x'.repeat(1_000_000), '', 'colours'])('of another name is none', (name) => {
    expect(nearestName(name, ['maxAsyncTasks', 'graceMs'])).toBeUndefined()
  })

  it('shares a letter with the name', () => {
    expect(nearestName('b', ['a'])).toBeUndefined()
    expect(nearestName('ab', ['cd', 'ac'])).toBe('ac')
  })

  it('of a plural is its singular', () => {
    expect(nearestName('retries', ['retry', 'rate'])).toBe('retry')
  })

  it('is the one with the fewest edits', () => {
    expect(nearestName('retentionM', ['retention', 'retentionMs', 'retainM'])).toBe('retentionMs')
    expect(nearestName('maxWaitMz', ['maxWait', 'maxWaitMs'])).toBe('maxWaitMs')
  })
})

it('without a near name, all names are listed', () => {
  expect(expectedName('graceMz', known)).toBe('a known name; the nearest is graceMs')
  expect(expectedName('somethingElse', known)).toBe('one of the names maxAsyncTasks, graceMs, clock, id')
  expect(expectedName('x', [])).toBe('a known name; there are none')
})
