/** Whether a run is repeated, and after how long: one row for each reason and each limit. */
import { expect, it } from 'vitest'
import { retryDelay, type FailedRun } from '../../../src/async-tasks/recovery/retrying.js'
import { RETRY_REASONS, type RetryPolicy } from '../../../src/protocol/retry-policy.js'

const policy: RetryPolicy = {
  attempts: 3,
  on: RETRY_REASONS,
  backoff: { initialMs: 100, factor: 3, maxMs: 250, jitter: false },
}
const run = (reason: unknown, more: Partial<FailedRun> = {}): FailedRun => ({
  outcome: { type: 'threw', reason },
  attempt: 1,
  couldNotStart: false,
  isOverdue: false,
  isOverBudget: false,
  stops: 0,
  ...more,
})
const delayOf = (reason: unknown, more: Partial<FailedRun> = {}, of: Partial<RetryPolicy> = {}) =>
  retryDelay({ ...policy, ...of }, 'a', run(reason, more))
const LIMITED = { code: 'RATE_LIMITED' }

it.each<[string, number | undefined, unknown, Partial<FailedRun>, Partial<RetryPolicy>]>([
  ['the first of three runs', 100, LIMITED, {}, {}],
  ['the second', 250, LIMITED, { attempt: 2 }, {}],
  ['the last', undefined, LIMITED, { attempt: 3 }, {}],
  ['one over its budget', undefined, LIMITED, { isOverBudget: true }, {}],
  ['one that returned', undefined, LIMITED, { outcome: { type: 'returned', value: {} } }, {}],
  ['one that returned, too late', 100, LIMITED, { outcome: { type: 'returned', value: {} }, isOverdue: true }, {}],
  ['one that did not stop', undefined, LIMITED, { outcome: { type: 'abandoned' }, isOverdue: true }, {}],
  ['one that could not start', 100, 'no', { couldNotStart: true }, { on: ['start-failed'] }],
  [
    'one that was late before it could not start',
    100,
    'no',
    { couldNotStart: true, isOverdue: true },
    { on: ['timeout'] },
  ],
  ['a program that could not start', 100, { code: 'PROCESS_NOT_STARTED' }, {}, { on: ['start-failed'] }],
  ['another that could not start', 100, { code: 'START_FAILED' }, {}, { on: ['start-failed'] }],
  ['one that was interrupted', 100, { code: 'INTERRUPTED' }, {}, { on: ['interrupted'] }],
  ['one that was stopped, at once', 0, { code: 'INTERRUPTED' }, { stops: 1 }, { on: ['interrupted'] }],
  ['one that was stopped in its last attempt', 0, { code: 'INTERRUPTED' }, { stops: 4, attempt: 3 }, {}],
  ['one that was stopped five times in a row', undefined, { code: 'INTERRUPTED' }, { stops: 5 }, {}],
  [
    'one that was stopped, where that is not repeated',
    undefined,
    { code: 'INTERRUPTED' },
    { stops: 1 },
    { on: ['timeout'] },
  ],
  ['one with the status 429', 100, { status: 429 }, {}, { on: ['rate-limited'] }],
  ['one with that status as text', 100, { status: '429' }, {}, { on: ['rate-limited'] }],
  ['one with another status', 100, { status: 500 }, {}, { on: ['error'] }],
  ['one that failed otherwise', 100, new Error('no'), {}, { on: ['error'] }],
  ['one that failed otherwise, where that is not repeated', undefined, new Error('no'), {}, { on: ['exit-code'] }],
  ['an agent that has failed, as another error', undefined, { code: 'AGENT_FAILED' }, {}, { on: ['error'] }],
  ['a reason that is not in the policy', undefined, LIMITED, {}, { on: ['timeout'] }],
  ['an exit code', 100, { exitCode: 2 }, {}, {}],
  ['the exit code 0', undefined, { exitCode: 0 }, {}, { on: ['exit-code'] }],
  ['no exit code', undefined, { exitCode: null }, {}, { on: ['exit-code'] }],
  ['an exit code in the list', 100, { exitCode: 2 }, {}, { exitCodes: [2] }],
  ['an exit code that is not', undefined, { exitCode: 3 }, {}, { exitCodes: [2] }],
  ['a wait that was asked for', 5_000, { ...LIMITED, retryAfterMs: 5_000 }, {}, {}],
  ['a shorter one than the back-off', 100, { ...LIMITED, retryAfterMs: 5 }, {}, {}],
  ['one of more than a day', 86_400_000, { ...LIMITED, retryAfterMs: 86_400_001 }, {}, {}],
  ['no number', 100, { ...LIMITED, retryAfterMs: '5000' }, {}, {}],
  ['a wait that goes with another reason', 100, { exitCode: 2, retryAfterMs: 5_000 }, {}, {}],
  ['no back-off', 0, LIMITED, { attempt: 2 }, { backoff: { initialMs: 0 } }],
  ['the default back-off', 2_000, LIMITED, { attempt: 2 }, { backoff: { jitter: false } }],
  ['the longest default back-off', 60_000, LIMITED, { attempt: 8 }, { backoff: { jitter: false }, attempts: 9 }],
])('F9: %s', (_what, delay, reason, more, of) => {
  expect(delayOf(reason, more, of)).toBe(delay)
})

it('F9: without a policy nothing is repeated', () => {
  expect(retryDelay(undefined, 'a', run(LIMITED))).toBeUndefined()
})

it('F9: tasks that have failed together wait between half and all of the back-off, and start apart', () => {
  const waits = (of: Partial<RetryPolicy>, reason: unknown = LIMITED): number[] =>
    Array.from({ length: 20 }, (_, at) => retryDelay({ ...policy, ...of }, `task-${at}`, run(reason)) ?? -1)
  const apart = waits({ backoff: { initialMs: 1000 } })
  for (const wait of apart) {
    expect(wait).toBeGreaterThanOrEqual(500)
    expect(wait).toBeLessThanOrEqual(1000)
  }
  expect(Math.max(...apart) - Math.min(...apart)).toBeGreaterThan(300)
  expect(new Set(apart.map((wait) => Math.floor(wait / 50))).size).toBeGreaterThan(5)
  expect(waits({ backoff: { initialMs: 1000 } })).toEqual(apart)
  const asked = waits({ backoff: { initialMs: 1000 } }, { ...LIMITED, retryAfterMs: 3000 })
  expect(Math.min(...asked)).toBeGreaterThanOrEqual(3000)
  expect(Math.max(...asked) - Math.min(...asked)).toBeGreaterThan(300)
  expect(new Set(waits({}))).toEqual(new Set([100]))
})
