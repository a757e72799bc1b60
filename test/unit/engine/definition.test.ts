/** What counts as a runner. */
import { describe, expect, it } from 'vitest'
import { aDefinition, aRunnable } from '../../../src/engine/definition.js'

const run = () => ({})

describe('a definition', () => {
  it.each([
    [{ run }, true],
    [{ run, name: 'a', description: 'b' }, true],
    [run, false],
  ] as const)('%#', (value, isOne) => {
    expect([aDefinition.accepts(value), aRunnable.accepts(value)]).toEqual([isOne, true])
    expect(() => aRunnable.checkContent?.(value, ['runner'])).not.toThrow()
  })

  it.each([undefined, null, 'run', 1, {}, { run: 1 }, { run: undefined }, []])('is not %j', (value) => {
    expect([aDefinition.accepts(value), aRunnable.accepts(value)]).toEqual([false, false])
  })

  it.each([
    [{ run, nme: 'a' }, 'the nearest is name'],
    [{ run, name: 1 }, 'runner.name: got 1, expected a string'],
    [{ run, description: 1 }, 'runner.description: got 1, expected a string'],
    [{ run, retry: 1 }, 'runner.retry'],
    [{ run, budget: 1 }, 'runner.budget'],
    [{}, 'runner.run: got undefined, expected a function'],
  ])('%j is refused in words', (value, words) => {
    for (const type of [aDefinition, aRunnable]) expect(() => type.checkContent?.(value, ['runner'])).toThrow(words)
  })

  it('says what is expected', () => {
    expect([aDefinition.expected, aRunnable.expected]).toEqual([
      '{ run }, with a function run',
      'a function, or { run }',
    ])
  })

  it('may be an instance of a class with more', () => {
    class Runner {
      readonly more = 1
      run = run
    }
    expect(() => aRunnable.checkContent?.(new Runner(), ['runner'])).not.toThrow()
  })
})
