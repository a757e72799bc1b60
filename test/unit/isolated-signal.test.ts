/** A2: listeners of an abort signal harm nobody, from the moment the signal is isolated. */
import { describe, expect, it, vi } from 'vitest'
import { isolateAbortListeners } from '../../src/isolated-signal.js'

function isolated() {
  const controller = new AbortController()
  const report = vi.fn()
  isolateAbortListeners(controller.signal, report)
  return { controller, signal: controller.signal, report }
}

const broken = (message: string) => () => {
  throw new Error(message)
}

describe('an isolated signal', () => {
  it('A2: reports what its listeners throw, functions and objects alike, and calls the rest', () => {
    const { controller, signal, report } = isolated()
    const last = vi.fn()
    signal.addEventListener('abort', broken('a function'))
    signal.addEventListener('abort', { handleEvent: broken('an object') })
    signal.onabort = broken('a handler')
    signal.addEventListener('abort', last)
    controller.abort()
    expect(report.mock.calls).toEqual([[new Error('a function')], [new Error('an object')], [new Error('a handler')]])
    expect(last).toHaveBeenCalledOnce()
  })

  it('leaves what is no listener to the platform', () => {
    const { controller, signal, report } = isolated()
    signal.addEventListener('abort', null as never)
    signal.removeEventListener('abort', null as never)
    expect(() => signal.addEventListener('abort', 7 as never)).toThrow(TypeError)
    controller.abort()
    expect(report).not.toHaveBeenCalled()
  })

  it('does not call what was taken back, nor a handler that was replaced', () => {
    const { controller, signal } = isolated()
    const listener = vi.fn()
    const handler = vi.fn()
    signal.addEventListener('abort', listener)
    signal.removeEventListener('abort', listener)
    signal.onabort = handler
    signal.onabort = null
    expect(signal.onabort).toBeNull()
    controller.abort()
    expect(listener).not.toHaveBeenCalled()
    expect(handler).not.toHaveBeenCalled()
  })
})
