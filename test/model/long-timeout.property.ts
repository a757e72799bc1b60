/** Timers of any length, on a platform that runs a timer at once when its delay is above a limit. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { clearLongTimeout, MAX_TIMER_MS, setLongTimeout } from '../../src/system/clock.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

const delay = fc.oneof(
  fc.nat(1000),
  fc.integer({ min: MAX_TIMER_MS - 5, max: MAX_TIMER_MS + 5 }),
  fc.integer({ min: 0, max: 5 * MAX_TIMER_MS }),
  fc.constant(Infinity),
)
const step = fc.oneof(fc.nat(1000), fc.integer({ min: 0, max: 2 * MAX_TIMER_MS }))

/** A timer runs once, at its time, unless it is cleared; no timer is left behind. */
export const longTimeoutProperty = () =>
  fc.property(
    delay,
    fc.array(step, { maxLength: 8 }),
    fc.option(fc.nat(8), { nil: undefined }),
    (ms, steps, clearAt) => {
      const clock = createManualClock()
      const firedAt: number[] = []
      const timer = setLongTimeout(clock, () => firedAt.push(clock.now()), ms)
      let isCleared = false
      steps.forEach((stepMs, index) => {
        if (index === clearAt) {
          isCleared ||= firedAt.length === 0
          clearLongTimeout(clock, timer)
        }
        clock.advance(stepMs)
        const isDue = !isCleared && clock.now() >= ms
        assert.deepStrictEqual(firedAt, isDue ? [ms] : [])
        assert.equal(clock.pending, isDue || isCleared || ms === Infinity ? 0 : 1)
      })
    },
  )
