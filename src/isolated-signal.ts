/**
 * Abort signals whose listeners cannot harm: the platform turns an exception in an abort listener into an uncaught
 * exception, which ends the process (A2).
 */

import { callIsolated } from './isolated-call.js'

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void }
type ListenerOptions = Parameters<AbortSignal['addEventListener']>[2]

/**
 * Makes every listener that is added to `signal` from now on catch its own exceptions and hand them to `report`.
 * Listeners that were added before keep the platform's behaviour; isolating a signal again does nothing.
 */
export function isolateAbortListeners(signal: AbortSignal, report: (error: unknown) => void): void {
  if (isolated.has(signal)) return
  isolated.add(signal)
  const wrappers = new WeakMap<object, Listener>()
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  const wrap = (listener: Listener): Listener => {
    const known = wrappers.get(listener)
    if (known !== undefined) return known
    const wrapper = (event: Event): void => {
      callIsolated(
        () => (typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event)),
        report,
      )
    }
    wrappers.set(listener, wrapper)
    return wrapper
  }
  let handler: Listener | null = signal.onabort as Listener | null
  signal.onabort = null
  if (handler !== null) add('abort', wrap(handler))
  Object.defineProperties(signal, {
    addEventListener: {
      configurable: true,
      value: (type: string, listener: Listener, options?: ListenerOptions) => {
        // What is no listener is the platform's to refuse.
        if (!isListener(listener)) {
          add(type, listener, options)
          return
        }
        // It may have been added before the signal was isolated, and must not be called twice.
        remove(type, listener, options)
        add(type, wrap(listener), options)
      },
    },
    removeEventListener: {
      configurable: true,
      value: (type: string, listener: Listener, options?: ListenerOptions) => {
        remove(type, listener, options)
        if (isListener(listener)) remove(type, wrap(listener), options)
      },
    },
    onabort: {
      configurable: true,
      get: () => handler,
      set: (next: unknown) => {
        if (handler !== null) remove('abort', wrap(handler))
        handler = typeof next === 'function' ? (next as Listener) : null
        if (handler !== null) add('abort', wrap(handler))
      },
    },
  })
}

const isolated = new WeakSet<AbortSignal>()

function isListener(value: unknown): value is Listener {
  return typeof value === 'function' || (typeof value === 'object' && value !== null)
}
