/** Timers of any length. */
import { describe, expect, it, vi } from 'vitest'
import {
  clearLongTimeout,
  MAX_TIMER_MS,
  setLongTimeout,
  systemClock,
  unrefTimer,
  withTimeLimit,
} from '../../../src/system/clock.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

describe('long timers', () => {
  it('fire once and on time, however long, and never ask the platform for more than it can do', () => {
    const asked: number[] = []
    const clock = createManualClock()
    const counting = {
      ...clock,
      setTimeout: (run: () => void, ms: number) => {
        asked.push(ms)
        return clock.setTimeout(run, ms)
      },
    }
    const run = vi.fn()
    setLongTimeout(counting, run, 2 * MAX_TIMER_MS + 5)
    clock.advance(2 * MAX_TIMER_MS + 4)
    expect(run).not.toHaveBeenCalled()
    clock.advance(1)
    expect(run).toHaveBeenCalledOnce()
    expect(Math.max(...asked)).toBeLessThanOrEqual(MAX_TIMER_MS)
  })

  it('can be taken back in any of their parts', () => {
    const clock = createManualClock()
    const run = vi.fn()
    const timer = setLongTimeout(clock, run, 3 * MAX_TIMER_MS)
    clock.advance(MAX_TIMER_MS + 1)
    clearLongTimeout(clock, timer)
    expect(clock.pending).toBe(0)
    clock.advance(5 * MAX_TIMER_MS)
    expect(run).not.toHaveBeenCalled()
    clearLongTimeout(clock, undefined)
  })

  it('never fire when they are infinite', () => {
    const clock = createManualClock()
    setLongTimeout(clock, () => expect.fail(), Infinity)
    expect(clock.pending).toBe(0)
  })
})

describe('the system clock', () => {
  it('stands still while the time of the platform goes back by a little, and follows it when somebody sets it', () => {
    vi.useFakeTimers({ now: 10_000 })
    try {
      const at = (now: number): number => {
        vi.setSystemTime(now)
        return systemClock.now()
      }
      expect([10_000, 9999, 9001, 10_001, 9002, 9001].map(at)).toEqual([10_000, 10_000, 10_000, 10_001, 10_001, 9001])
    } finally {
      vi.useRealTimers()
    }
  })

  it('runs what is due at once in the next turn of the event loop, unless it is cleared', async () => {
    const order: string[] = []
    const note = (what: string) => () => void order.push(what)
    systemClock.setTimeout(note('first'), 0)
    systemClock.clearTimeout(systemClock.setTimeout(note('cleared'), 0))
    systemClock.setTimeout(note('late'), -5)
    await Promise.resolve()
    expect(order).toEqual([])
    await new Promise(setImmediate)
    expect(order).toEqual(['first', 'late'])
  })

  it('clears timers of either kind, and can let the process end although one is set', async () => {
    const run = vi.fn()
    const timers = [0, 1].map((ms) => systemClock.setTimeout(run, ms))
    for (const timer of timers) unrefTimer(timer)
    for (const timer of timers) systemClock.clearTimeout(timer)
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(run).not.toHaveBeenCalled()
  })

  it('uses timers where there is no setImmediate', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    vi.stubGlobal('setImmediate', undefined)
    Reflect.deleteProperty(globalThis, 'setImmediate')
    try {
      const run = vi.fn()
      systemClock.setTimeout(run, 0)
      vi.advanceTimersByTime(0)
      expect(run).toHaveBeenCalledOnce()
    } finally {
      vi.unstubAllGlobals()
      vi.useRealTimers()
    }
  })

  it('looks the globals up when it is called', () => {
    vi.useFakeTimers({ now: 77 })
    try {
      const run = vi.fn()
      const cleared = vi.fn()
      systemClock.setTimeout(run, 10)
      systemClock.clearTimeout(systemClock.setTimeout(cleared, 10))
      vi.advanceTimersByTime(10)
      expect(run).toHaveBeenCalledOnce()
      expect(cleared).not.toHaveBeenCalled()
      expect(systemClock.now()).toBe(87)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a promise with a time limit', () => {
  const never = new Promise<never>(() => undefined)
  const failure = new Error('no')

  it.each([1000, Infinity])('of %d ms settles as it does, and leaves no timer', async (ms) => {
    const clock = createManualClock()
    const limit = { clock, ms, late: () => 'late' }
    expect(await withTimeLimit(Promise.resolve('done'), limit)).toBe('done')
    await expect(withTimeLimit(Promise.reject(failure), limit)).rejects.toBe(failure)
    expect(clock.pending).toBe(0)
  })

  it('is what `late` returns or throws when its time has passed, and not before', async () => {
    const clock = createManualClock()
    const late = vi.fn(() => 'late')
    const label = { name: 'limit', kind: 'deadline' } as const
    const returned = withTimeLimit(never, { clock, ms: 1000, late, label })
    const thrown = withTimeLimit(never, {
      clock,
      ms: 1000,
      late: () => {
        throw failure
      },
    })
    clock.advance(999)
    expect(late).not.toHaveBeenCalled()
    clock.advance(1)
    expect(await returned).toBe('late')
    await expect(thrown).rejects.toBe(failure)
    expect(late).toHaveBeenCalledOnce()
    expect(clock.pending).toBe(0)
  })
})
