/** Waiting for something that cannot be stopped ends with the signal. */
import { describe, expect, it, vi } from 'vitest'
import { orAborted } from '../../../src/tools/abortable.js'
import { deferred } from './tool-host.js'

describe('waiting with a signal', () => {
  it('gives what the promise gives, and stops listening', async () => {
    const { signal } = new AbortController()
    const [add, remove] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')]
    expect(await orAborted(Promise.resolve(1), signal)).toBe(1)
    await expect(orAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
    expect(add).toHaveBeenCalledTimes(2)
    expect(remove).toHaveBeenCalledTimes(2)
  })

  it('ends with the reason of the abort, and ignores what the promise does later', async () => {
    const controller = new AbortController()
    const hanging = deferred<number>()
    const waiting = orAborted(hanging.promise, controller.signal)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    hanging.reject(new Error('too late'))
  })

  it('ends at once when the signal had aborted before, whatever its reason', async () => {
    await expect(orAborted(deferred().promise, AbortSignal.abort('a string'))).rejects.toThrow('Aborted.')
  })

  it('is just waiting without a signal', async () => {
    expect(await orAborted(Promise.resolve(1), undefined)).toBe(1)
  })
})
