/** Durations have the format of seed 002. */
import { expect, it } from 'vitest'
import { formatDuration } from '../../../src/data/duration.js'

it.each([
  [0, '0s'],
  [999, '0s'],
  [59_999, '59s'],
  [60_000, '1m 0s'],
  [185_000, '3m 5s'],
  [3_599_999, '59m 59s'],
  [3_600_000, '1h 0m'],
  [7_659_000, '2h 7m'],
  [360_000_000, '100h 0m'],
])('%i ms read as %s', (ms, text) => {
  expect(formatDuration(5_000, 5_000 + ms)).toBe(text)
})

it('a clock that went back gives 0s', () => {
  expect(formatDuration(5_000, 1_000)).toBe('0s')
})
