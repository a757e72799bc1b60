/** Numbers, times and values as the page writes them. */
import { describe, expect, it } from 'vitest'
import { linePath, roundMax } from '../../../src/page/app/health/line-path.js'
import { byteSize, counted, duration, growing, preciseTime, stoppingText } from '../../../src/page/app/text/format.js'
import { beginningOfJson } from '../../../src/page/app/text/json-beginning.js'
import { entriesOf, folded, parsed } from '../../../src/page/app/text/json-values.js'
import { progressText, shareOf } from '../../../src/page/app/text/progress.js'
import { spendingText } from '../../../src/page/app/text/spending.js'
import { visible, visibleLines } from '../../../src/page/app/text/visible.js'

describe('texts of the page', () => {
  it.each([
    [-5, '0 ms'],
    [999.4, '999 ms'],
    [1000, '1.0 s'],
    [9960, '10 s'],
    [59_400, '59 s'],
    [59_600, '1 min'],
    [200_000, '3 min 20 s'],
    [3_599_700, '1 h'],
    [3_660_000, '1 h 1 min'],
    [86_400_000, '1 d'],
    [90_000_000, '1 d 1 h'],
  ])('writes %d ms as %s', (ms, text) => {
    expect(duration(ms)).toBe(text)
  })

  it('writes sizes, counts and what still grows', () => {
    expect([0, 999, 1000, 65_536, 123_456_789].map(byteSize)).toEqual(['0 B', '999 B', '1 kB', '65.5 kB', '123 MB'])
    expect([counted(1, 'task'), counted(2000, 'task'), growing(4900), growing(-1)]).toEqual([
      '1 task',
      '2,000 tasks',
      '4 s',
      '0 s',
    ])
    expect(preciseTime(1_700_000_000_007)).toMatch(/^\d\d:\d\d:\d\d\.007$/)
  })

  it('says how long the program of an ended task may take to stop', () => {
    expect(stoppingText(5000)).toBe('Its program is being stopped, which may take up to 5.0 s.')
  })

  it('shows control characters and reordering, and keeps lines where there are lines', () => {
    expect(visible('a\u0000b\u202ec\nd')).toBe('a\\u0000b\\u202ec\\u000ad')
    expect(visibleLines('a\r\nb\tc\u001b[31m\rd\n')).toBe('a\nb\tc\\u001b[31m\\u000dd\n')
  })

  it('writes progress and spending', () => {
    expect(progressText({ progress: 3, total: 12, message: 'Reading' })).toBe('25 % · Reading')
    expect([{ progress: 3 }, { progress: 9, total: 3, message: '' }].map(progressText)).toEqual(['3 so far', '100 %'])
    expect(
      [
        { progress: 0, total: 3, message: 'Waiting' },
        { progress: 0, total: 3 },
      ].map(progressText),
    ).toEqual([...['Waiting', '0 %']])
    expect([shareOf(-1, 2), shareOf(1, 0)]).toEqual([0, 0])
    expect(spendingText({ tokens: 1200, seconds: 3 }, { tokens: 5000, cost: 2 })).toBe(
      '1,200 of 5,000 tokens, 0 of 2 cost, 3 seconds',
    )
  })

  it('reads and folds JSON', () => {
    expect(parsed('{"a":[1]}')?.value).toEqual({ a: [1] })
    expect(parsed('{"a":')).toBeUndefined()
    expect([folded([1, 2]), folded({ a: 1 }), entriesOf('x'), entriesOf(['y'])]).toEqual([
      '[2]',
      '{1}',
      undefined,
      [['0', 'y']],
    ])
  })
})

describe('the beginning of a JSON text', () => {
  const value = { a: 'x\n"\u202e\\', 'k"]': [1, -2.5e3, true, null, [], {}, { b: [['deep'], 'y'] }], e: '' }

  it('is a value, wherever it is cut, that goes on in the next one', () => {
    const text = JSON.stringify(value)
    let before = ''
    for (let length = 1; length <= text.length; length += 1) {
      const { value: shown } = beginningOfJson(text.slice(0, length)) ?? {}
      expect(typeof shown).toBe('object')
      // Without what closes it, each is the beginning of the whole.
      const words = JSON.stringify(shown).replace(/["\]}]+$/, '')
      expect(text.startsWith(words)).toBe(true)
      expect(words.length).toBeGreaterThanOrEqual(before.length - 2)
      before = words
    }
    expect(beginningOfJson(text)?.value).toEqual(value)
    expect(beginningOfJson(JSON.stringify(value, null, 2).slice(0, 40))?.value).toEqual({ a: value.a, 'k"]': [1] })
  })

  it('is as long as it can be', () => {
    expect(
      ['{"a":"line\\nn', '{"a":"\\u20', '{"a":1,"b', '[1,2', '"te', '{"a": [tr', 'tru', ''].map(
        (text) => beginningOfJson(text)?.value,
      ),
    ).toEqual([{ a: 'line\nn' }, { a: '' }, { a: 1 }, [1], 'te', { a: [] }, undefined, undefined])
  })
})

describe('the lines of a chart', () => {
  it('have gaps where there is nothing, and end at a round number', () => {
    const box = { from: 0, to: 10, max: 4, width: 100, height: 40 }
    const points = [{ at: 0, value: 0 }, { at: 5, value: 4 }, { at: 6 }, { at: 10, value: 9 }]
    expect(linePath(points, box)).toBe('M0 40h.01L50 0M100 0h.01')
    expect([0, 0.2, 1, 1.1, 3, 7, 10, 11, 2300].map(roundMax)).toEqual([1, 1, 1, 2, 5, 10, 10, 20, 5000])
  })
})
