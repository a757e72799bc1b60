/** Waiting that a signal ends at once. */
import { describe, expect, it } from 'vitest'
import { pause, until, within } from '../../../../../src/client/extension/tools/waiting.js'

const never = new AbortController().signal

describe('waiting', () => {
  it('ends at once with the reason of the signal', async () => {
    const stopping = new AbortController()
    const waiting = pause(100_000, stopping.signal)
    const asking = until(() => false, { ms: 100_000, everyMs: 100_000, signal: stopping.signal })
    stopping.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    await expect(asking).rejects.toThrow('stopped')
    await expect(pause(100_000, stopping.signal)).rejects.toThrow('stopped')
  })

  it('says whether the condition became true', async () => {
    let asked = 0
    expect(await until(() => (asked += 1) === 3, { ms: 10_000, everyMs: 0, signal: never })).toBe(true)
    expect(await until(() => false, { ms: 0, signal: never })).toBe(false)
  })

  it('limits work', async () => {
    const late = (): Error => new Error('late')
    await expect(within(0, late, never, (signal) => pause(100_000, signal))).rejects.toThrow('late')
    expect(await within(100_000, late, never, () => Promise.resolve(1))).toBe(1)
  })
})
