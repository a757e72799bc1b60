import { describe, expect, it, vi } from 'vitest'
import { sleep, whenAborted } from '../../../src/system/abort.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

describe('whenAborted', () => {
  it('calls the listener once, and at once if the signal has aborted', () => {
    const controller = new AbortController()
    const onAbort = vi.fn()
    whenAborted(controller.signal, onAbort)
    expect(onAbort).not.toHaveBeenCalled()
    controller.abort()
    expect(onAbort).toHaveBeenCalledTimes(1)
    whenAborted(controller.signal, onAbort)
    expect(onAbort).toHaveBeenCalledTimes(2)
  })

  it('does not call a listener that was removed, and accepts no signal', () => {
    const controller = new AbortController()
    const onAbort = vi.fn()
    whenAborted(controller.signal, onAbort)()
    controller.abort()
    expect(onAbort).not.toHaveBeenCalled()
    whenAborted(undefined, onAbort)()
    expect(onAbort).not.toHaveBeenCalled()
  })
})

describe('sleep', () => {
  it('resolves after its time, and removes its listener', async () => {
    const clock = createManualClock()
    const { signal } = new AbortController()
    const removed = vi.spyOn(signal, 'removeEventListener')
    const slept = sleep(clock, 100, signal)
    expect(clock.pending).toBe(1)
    clock.advance(100)
    await slept
    expect(removed).toHaveBeenCalledTimes(1)
    expect(clock.pending).toBe(0)
  })

  it('rejects with the reason of the signal, and removes its timer', async () => {
    const clock = createManualClock()
    const controller = new AbortController()
    const slept = sleep(clock, 100, controller.signal)
    controller.abort(new Error('enough'))
    await expect(slept).rejects.toThrow('enough')
    expect(clock.pending).toBe(0)
    await expect(sleep(clock, 100, controller.signal)).rejects.toThrow('enough')
    expect(clock.pending).toBe(0)
  })
})
