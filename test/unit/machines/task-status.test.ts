import { expect, it } from 'vitest'
import {
  accountOf,
  countsOf,
  hasEnded,
  holdsSlot,
  startsOrEndsRun,
  STATUSES,
  TERMINAL_STATUSES,
} from '../../../machines/task-status.js'

it('each status is active, counted in an account of its owner, or an end that holds no slot', () => {
  expect(TERMINAL_STATUSES).toEqual(['completed', 'failed', 'cancelled'])
  expect(STATUSES.filter(holdsSlot)).toEqual(['running'])
  for (const status of STATUSES) {
    if (hasEnded(status)) expect(holdsSlot(status)).toBe(false)
    else expect(accountOf(status)).toBe(holdsSlot(status) ? 'running' : 'queued')
  }
})

it('a run starts, or is over and its task waits, when the slot changes and the task has not ended', () => {
  const changes = ([null, ...STATUSES] as const).flatMap((from) => STATUSES.map((to) => [from, to] as const))
  expect(changes.filter(([from, to]) => startsOrEndsRun(from, to) && (from === null || !hasEnded(from)))).toEqual([
    [null, 'running'],
    ['queued', 'running'],
    ['running', 'queued'],
  ])
})

it('a list counts queued tasks only when there are some, and all others always', () => {
  expect(countsOf([])).toEqual([
    ['running', 0],
    ['completed', 0],
    ['failed', 0],
    ['cancelled', 0],
  ])
  expect(countsOf(['failed', 'queued', 'failed'])).toEqual([
    ['queued', 1],
    ['running', 0],
    ['completed', 0],
    ['failed', 2],
    ['cancelled', 0],
  ])
})
