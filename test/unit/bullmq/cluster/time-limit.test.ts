// How long a request waits for a Redis that is away.
import { expect, it } from 'vitest'
import { createManualClock } from 'agent-tasks/testing'
import { withLimit } from '../../../../src/bullmq/cluster/time-limit.js'

it('N2: settles as its promise does, and leaves no timer', async () => {
  const clock = createManualClock()
  const inTime = withLimit(clock, 100)
  expect(await inTime(Promise.resolve('done'))).toBe('done')
  await expect(inTime(Promise.reject(new Error('no')))).rejects.toThrow('no')
})

it('N2: is given up when the time has passed, and says how long it has waited', async () => {
  const clock = createManualClock()
  const late = withLimit(clock, 100)(new Promise(() => undefined))
  clock.advance(100)
  await expect(late).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: 'Redis has not answered for 100 ms. Try again later.',
  })
})
