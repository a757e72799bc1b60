import { expect, it } from 'vitest'
import { createBackoff } from '../../../src/bullmq/backoff.js'
import { failureLog } from '../../../src/bullmq/failure-log.js'

it('W6: the same failure is logged once a minute, with the number of those that were left out', () => {
  const lines: string[] = []
  let now = 0
  const logFailure = failureLog(
    (line) => lines.push(line),
    () => now,
  )
  const oom = new Error('OOM command not allowed')
  for (now = 0; now < 150_000; now += 100) logFailure('queue', 'Queue a', oom)
  expect(lines).toEqual([
    'Queue a: OOM command not allowed',
    'Queue a: OOM command not allowed (599 more since the last line)',
    'Queue a: OOM command not allowed (599 more since the last line)',
  ])
})

it('W6: a failure of another kind, or with another code of Redis, is logged at once', () => {
  const lines: string[] = []
  const logFailure = failureLog(
    (line) => lines.push(line),
    () => 0,
  )
  for (const text of ['OOM a', 'OOM b', 'READONLY a', 'It was reset.', 'It was closed.']) {
    logFailure('queue', 'Q', new Error(text))
  }
  logFailure('write', 'Task t', new Error('OOM c'))
  expect(lines).toEqual(['Q: OOM a', 'Q: READONLY a', 'Q: It was reset.', 'Task t: OOM c'])
})

it('W6: each wait is twice as long as the one before, up to a limit, until a success', () => {
  const backoff = createBackoff(100, 500)
  expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([100, 200, 400, 500, 500])
  backoff.reset()
  expect(backoff.next()).toBe(100)
})
