/** A2: the exceptions of abort listeners are reported, once the signal is isolated. */
import { describe, expect, it, vi } from 'vitest'
import { isolateAbortListeners } from '../../../src/isolation/isolated-signal.js'

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

  it('A2: isolates the handler that it had, and that of a signal with its own methods', () => {
    for (const isOdd of [false, true]) {
      const { signal, abort } = (() => {
        const controller = new AbortController()
        return { signal: controller.signal, abort: () => controller.abort() }
      })()
      const added: string[] = []
      if (isOdd) {
        const add = signal.addEventListener.bind(signal)
        Object.defineProperty(signal, 'addEventListener', {
          configurable: true,
          value: (type: 'abort', listener: () => void, options?: boolean) => {
            added.push(type)
            add(type, listener, options)
          },
        })
      }
      const report = vi.fn()
      const last = vi.fn()
      signal.onabort = broken('a handler')
      isolateAbortListeners(signal, report)
      signal.addEventListener('abort', broken('a function'))
      signal.addEventListener('abort', last)
      abort()
      expect(report.mock.calls).toEqual([[new Error('a handler')], [new Error('a function')]])
      expect(last).toHaveBeenCalledOnce()
      expect(added.length > 0).toBe(isOdd)
    }
  })

  it('leaves an invalid listener to the platform', () => {
    const { controller, signal, report } = isolated()
    signal.addEventListener('abort', null as never)
    signal.removeEventListener('abort', null as never)
    expect(() => signal.addEventListener('abort', 7 as never)).toThrow(TypeError)
    controller.abort()
    expect(report).not.toHaveBeenCalled()
  })

  it('does not call a listener that was removed, nor a handler that was replaced', () => {
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

  it('A2: is isolated once, however often, and by the first report', () => {
    const { controller, signal, report } = isolated()
    const second = vi.fn()
    signal.onabort = broken('a handler')
    isolateAbortListeners(signal, second)
    controller.abort()
    expect(report).toHaveBeenCalledExactlyOnceWith(new Error('a handler'))
    expect(second).not.toHaveBeenCalled()
  })

  it('has the methods of all others, and no handler where it had none', () => {
    const [one, other] = [isolated().signal, isolated().signal]
    expect(Object.getPrototypeOf(one)).toBe(Object.getPrototypeOf(other))
    expect([Object.hasOwn(one, 'addEventListener'), one.onabort, one instanceof AbortSignal]).toEqual([
      false,
      null,
      true,
    ])
    one.onabort = 'nothing' as never
    expect(one.onabort).toBeNull()
    one.onabort = {} as never
    expect(one.onabort).toBeNull()
  })

  it('removes a listener that was added before it was isolated, and calls one once that is added again', () => {
    const controller = new AbortController()
    const { signal } = controller
    const [removed, again] = [vi.fn(), vi.fn()]
    signal.addEventListener('abort', removed)
    signal.addEventListener('abort', again)
    isolateAbortListeners(signal, vi.fn())
    signal.removeEventListener('abort', removed)
    signal.addEventListener('abort', again)
    controller.abort()
    expect([removed.mock.calls.length, again.mock.calls.length]).toEqual([0, 1])
  })

  it('lets others wrap its methods, as tools do that watch signals', () => {
    const { signal } = isolated()
    for (const name of ['addEventListener', 'removeEventListener', 'onabort']) {
      expect(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(signal), name)?.configurable).toBe(true)
    }
  })
})
