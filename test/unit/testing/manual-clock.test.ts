/** The manual clock: the order and times of its timers. */
import { describe, expect, it } from 'vitest'
import { MAX_TIMER_MS, setLongTimeout } from '../../../src/system/clock.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

describe('a manual clock', () => {
  it('stands still until it is moved', () => {
    const clock = createManualClock(1_000)
    expect(clock.now()).toBe(1_000)
    clock.advance(25)
    expect(clock.now()).toBe(1_025)
  })

  it('runs timers in order of due time, then of setting, each once and at its own time', () => {
    const clock = createManualClock()
    const ran: string[] = []
    for (const [name, ms] of [
      ['late', 30],
      ['first', 10],
      ['second', 10],
      ['not yet', 31],
    ] as const) {
      clock.setTimeout(() => ran.push(`${name} at ${clock.now()}`), ms)
    }
    clock.advance(30)
    clock.advance(0)
    expect(ran).toEqual(['first at 10', 'second at 10', 'late at 30'])
    expect(clock.pending).toBe(1)
  })

  it('runs timers that other timers set, if they become due in the same advance', () => {
    const clock = createManualClock()
    const ran: number[] = []
    const again = (): void => {
      ran.push(clock.now())
      clock.setTimeout(again, 10)
    }
    clock.setTimeout(again, 10)
    clock.setTimeout(() => ran.push(-clock.now()), 15)
    clock.advance(30)
    expect(ran).toEqual([10, -15, 20, 30])
    expect(clock.pending).toBe(1)
  })

  it('does not run a cleared timer, even one that was cleared by a timer just before', () => {
    const clock = createManualClock()
    const second = clock.setTimeout(() => expect.unreachable(), 20)
    clock.setTimeout(() => clock.clearTimeout(second), 10)
    clock.clearTimeout(undefined)
    expect(clock.pending).toBe(2)
    clock.advance(100)
    expect(clock.pending).toBe(0)
  })

  it('keeps working after a timer that threw', () => {
    const clock = createManualClock()
    clock.setTimeout(() => {
      throw new Error('on purpose')
    }, 1)
    expect(() => clock.advance(5)).toThrow('on purpose')
    expect(clock.pending).toBe(0)
    clock.advance(5)
    expect(clock.now()).toBe(6)
  })

  it('does not go back after a timer that has moved it further', () => {
    const clock = createManualClock()
    const ran: number[] = []
    clock.setTimeout(() => clock.advance(50), 10)
    clock.setTimeout(() => ran.push(clock.now()), 20)
    clock.advance(15)
    expect([ran, clock.now(), clock.pending]).toEqual([[20], 60, 0])
  })

  it('treats delays as the platform does: one above the limit fires at once', () => {
    const clock = createManualClock()
    let fired = 0
    for (const ms of [MAX_TIMER_MS + 1, -5, NaN]) clock.setTimeout(() => (fired += 1), ms)
    clock.setTimeout(() => expect.unreachable(), MAX_TIMER_MS)
    clock.advance(0)
    expect(fired).toBe(3)
  })

  it('runs a split long timer in one advance', () => {
    const clock = createManualClock()
    const firedAt: number[] = []
    setLongTimeout(clock, () => firedAt.push(clock.now()), 3 * MAX_TIMER_MS)
    clock.advance(3 * MAX_TIMER_MS - 1)
    expect(firedAt).toEqual([])
    clock.advance(1)
    expect(firedAt).toEqual([3 * MAX_TIMER_MS])
  })

  it('rejects a negative time, and a timer that sets itself again without a delay', () => {
    const clock = createManualClock()
    expect(() => clock.advance(-1)).toThrow('ms: got -1, expected a number of ms >= 0')
    const forever = (): unknown => clock.setTimeout(forever, 0)
    forever()
    expect(() => clock.advance(0)).toThrow('without a delay')
  })
})
