/**
 * Abort signals whose listeners cannot harm: the platform turns an exception in an abort listener into an uncaught
 * exception, which ends the process (A2).
 *
 * Every run has such a signal, so one costs as little as it can: it shares its methods with all others of its kind, and what
 * it has to remember is made when someone listens.
 */

import { callIsolated } from './isolated-call.js'

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void }
type ListenerOptions = Parameters<AbortSignal['addEventListener']>[2]

/** What an isolated signal has of its own. */
interface Isolation {
  readonly report: (error: unknown) => void
  /** What stands for each listener, so that it can be taken back. */
  wrappers: WeakMap<object, Listener> | undefined
  handler: Listener | null
}

const ISOLATION = Symbol('isolation')

type IsolatedSignal = AbortSignal & { readonly [ISOLATION]: Isolation }

/**
 * Makes every listener that is added to `signal` from now on catch its own exceptions and hand them to `report`.
 * Listeners that were added before keep the platform's behaviour; isolating a signal again does nothing.
 */
export function isolateAbortListeners(signal: AbortSignal, report: (error: unknown) => void): void {
  if (ISOLATION in signal) return
  const handler = signal.onabort as Listener | null
  if (handler !== null) signal.onabort = null
  Object.defineProperty(signal, ISOLATION, { value: { report, wrappers: undefined, handler: null } })
  // A signal with methods of its own is isolated by itself.
  if (Object.hasOwn(signal, 'addEventListener')) Object.defineProperties(signal, isolatingMethods(signal))
  else Object.setPrototypeOf(signal, isolatingPrototype(Object.getPrototypeOf(signal) as AbortSignal))
  if (handler !== null) signal.onabort = handler as AbortSignal['onabort']
}

const prototypes = new WeakMap<AbortSignal, object>()

function isolatingPrototype(of: AbortSignal): object {
  let prototype = prototypes.get(of)
  if (prototype === undefined) prototypes.set(of, (prototype = Object.create(of, isolatingMethods(of)) as object))
  return prototype
}

/** @param from has the methods that are isolated */
function isolatingMethods(from: AbortSignal): PropertyDescriptorMap {
  /* eslint-disable @typescript-eslint/unbound-method -- they are called with the signal they are asked of */
  const add = from.addEventListener
  const remove = from.removeEventListener
  /* eslint-enable @typescript-eslint/unbound-method */
  return {
    addEventListener: {
      configurable: true,
      value(this: IsolatedSignal, type: string, listener: Listener, options?: ListenerOptions) {
        // What is no listener is the platform's to refuse.
        if (!isListener(listener)) {
          add.call(this, type, listener, options)
          return
        }
        // It may have been added before the signal was isolated, and must not be called twice.
        remove.call(this, type, listener, options)
        add.call(this, type, wrapperOf(this, listener), options)
      },
    },
    removeEventListener: {
      configurable: true,
      value(this: IsolatedSignal, type: string, listener: Listener, options?: ListenerOptions) {
        remove.call(this, type, listener, options)
        if (isListener(listener)) remove.call(this, type, wrapperOf(this, listener), options)
      },
    },
    onabort: {
      configurable: true,
      get(this: IsolatedSignal) {
        return this[ISOLATION].handler
      },
      set(this: IsolatedSignal, next: unknown) {
        const isolation = this[ISOLATION]
        if (isolation.handler !== null) remove.call(this, 'abort', wrapperOf(this, isolation.handler))
        isolation.handler = typeof next === 'function' ? (next as Listener) : null
        if (isolation.handler !== null) add.call(this, 'abort', wrapperOf(this, isolation.handler))
      },
    },
  }
}

function wrapperOf(signal: IsolatedSignal, listener: Listener): Listener {
  const isolation = signal[ISOLATION]
  const wrappers = (isolation.wrappers ??= new WeakMap())
  const known = wrappers.get(listener)
  if (known !== undefined) return known
  const wrapper = (event: Event): void => {
    callIsolated(
      () => (typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event)),
      isolation.report,
    )
  }
  wrappers.set(listener, wrapper)
  return wrapper
}

function isListener(value: unknown): value is Listener {
  return typeof value === 'function' || (typeof value === 'object' && value !== null)
}
