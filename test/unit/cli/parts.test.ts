// What the command line reads and shows, by itself.
import { describe, expect, it } from 'vitest'
import { parseInstanceOption, parseInstanceOptions } from '../../../src/cli/instance-option.js'
import { formatAge, formatTable, oneLine } from '../../../src/cli/table.js'

describe('--instance', () => {
  it.each([
    ['a=node', { id: 'a', command: 'node', args: [] }],
    [
      `b.1=npx x --name 'two words' "and 'more'"`,
      { id: 'b.1', command: 'npx', args: ['x', '--name', 'two words', "and 'more'"] },
    ],
    ['c=http://127.0.0.1:1/mcp?a=b', { id: 'c', url: 'http://127.0.0.1:1/mcp?a=b' }],
  ])('reads %s', (value, expected) => {
    expect(parseInstanceOption(value)).toEqual(expected)
  })

  it.each(['', 'a', '=node', 'a b=node', 'a=', 'a=   '])('refuses %j', (value) => {
    expect(() => parseInstanceOption(value)).toThrow('--instance')
  })

  it('wants each name once', () => {
    expect(() => parseInstanceOptions(['a=x', 'a=y'])).toThrow('--instance: got "a"')
  })
})

describe('tables', () => {
  it('pad all columns but the last', () => {
    expect(
      formatTable(
        ['A', 'LONG', 'C'],
        [
          ['one', 'b', ''],
          ['x', 'y', 'z'],
        ],
      ),
    ).toEqual(['A    LONG  C', 'one  b', 'x    y     z'])
  })

  it.each([
    [0, '0s'],
    [119_000, '119s'],
    [180_000, '3m'],
    [7_200_000, '2h'],
    [4 * 86_400_000, '4d'],
    [-5000, '0s'],
  ])('say that %d ms are %s', (age, text) => {
    expect(formatAge(1_000_000_000_000, 1_000_000_000_000 + age)).toBe(text)
  })

  it('make one line of a text, without what steers a terminal', () => {
    expect(oneLine('a\r\n\tb\u001b[1mc\u009b', 20)).toBe('a b [1mc')
    expect(oneLine('0123456789', 8)).toBe('01234...')
  })
})
