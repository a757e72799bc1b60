// What the watches of a race find, and what they leave of the process.
import { expect, it, vi } from 'vitest'
import { watchOutside } from '../../../src/testing/outside-work.js'
import { originOf } from '../../../src/testing/timer-origin.js'
import { watchRejections } from '../../../src/testing/unhandled-rejections.js'

it('each rejection is found once, by each watch, the first one first', async () => {
  const before = process.listeners('unhandledRejection')
  const [one, other] = [watchRejections(), watchRejections()]
  expect(await one.first()).toBeUndefined()
  void Promise.reject(new Error('first'))
  void Promise.reject(new Error('second'))
  expect(await one.first()).toEqual({ reason: new Error('first') })
  expect(await one.first()).toBeUndefined()
  expect(await other.first()).toEqual({ reason: new Error('first') })
  one.stop()
  // The other one still watches in place of the listeners of others.
  expect(process.listeners('unhandledRejection')).toHaveLength(1)
  void Promise.reject(new Error('third'))
  expect(await other.first()).toEqual({ reason: new Error('third') })
  expect(await one.first()).toBeUndefined()
  other.stop()
  expect(process.listeners('unhandledRejection')).toEqual(before)
})

it('a fetch is counted while anybody watches, and the platform has its own again afterwards', async () => {
  const platform = globalThis.fetch
  const answer = vi.fn(() => Promise.resolve(new Response('')))
  globalThis.fetch = answer
  try {
    const one = watchOutside()
    await globalThis.fetch('http://localhost/')
    const other = watchOutside()
    expect([one.hint().includes('started fetch'), other.hint().includes('fetch')]).toEqual([true, false])
    other.stop()
    await globalThis.fetch('http://localhost/')
    const third = watchOutside()
    const fourth = watchOutside()
    fourth.stop()
    expect(third.hint()).not.toContain('started fetch')
    await globalThis.fetch('http://localhost/')
    expect(third.hint()).toContain('started fetch')
    third.stop()
    one.stop()
    expect(globalThis.fetch).toBe(answer)
    expect(answer).toHaveBeenCalledTimes(3)
    // One that was put in its place meanwhile stays.
    const last = watchOutside()
    globalThis.fetch = platform
    last.stop()
    expect(globalThis.fetch).toBe(platform)
  } finally {
    globalThis.fetch = platform
  }
})

it('the place of a timer is read from a long stack, and stacks are as long as before afterwards', () => {
  const { stackTraceLimit } = Error
  const set = (): unknown => originOf(set).call
  const deep = (levels: number): unknown => (levels === 0 ? set() : deep(levels - 1))
  const { stack = '' } = deep(50) as { stack?: string }
  expect(stack.split('\n').length).toBeGreaterThan(50)
  expect(Error.stackTraceLimit).toBe(stackTraceLimit)
})
