import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { every, pause, within } from '../../../src/bullmq/timing.js'

describe('a time limit', () => {
  it('settles as its promise does', async () => {
    expect(await within(10_000, Promise.resolve(1))).toBe(1)
    await expect(within(10_000, Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  it('rejects when the time has passed', async () => {
    await expect(within(-1, new Promise(() => undefined))).rejects.toThrow('Redis did not answer within 0 ms.')
  })
})

it('something is done again and again until it is stopped', async () => {
  let times = 0
  const stop = every(1, () => (times += 1))
  while (times < 3) await pause(1)
  stop()
  const before = times
  await pause(20)
  expect(times).toBe(before)
})

it('something that stops itself leaves no timer', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let times = 0
  const stop = every(10, () => {
    times += 1
    stop()
  })
  vi.advanceTimersByTime(100)
  expect([times, vi.getTimerCount()]).toEqual([1, 0])
})
