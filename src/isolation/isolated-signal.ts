/**
 * Isolates the listeners of abort signals (promise A2). Without isolation, an exception in an abort listener becomes an uncaught exception, which
 * ends the process.
 *
 * Each run has such a signal, so isolation must be cheap. All signals therefore share their methods, and a signal gets its map of listeners with its
 * first listener.
 */
import { callIsolated } from './isolated-call.js'

type Listener = ((event: Event) => void) | { handleEvent(event: Event): void }
type ListenerOptions = Parameters<AbortSignal['addEventListener']>[2]

interface Isolation {
  readonly report: (error: unknown) => void
  /** The wrapper of each listener. `removeEventListener` needs it. */
  wrappers: WeakMap<object, Listener> | undefined
  handler: Listener | null
}

const ISOLATION = Symbol('isolation')

type IsolatedSignal = AbortSignal & { readonly [ISOLATION]: Isolation }

/**
 * Isolates all listeners that are added to `signal` from now on: their exceptions are passed to `report`. Listeners that were added earlier are not
 * isolated. Isolating a signal a second time has no effect.
 */
export function isolateAbortListeners(signal: AbortSignal, report: (error: unknown) => void): void {
  if (ISOLATION in signal) return
  const handler = signal.onabort as Listener | null
  if (handler !== null) signal.onabort = null
  Object.defineProperty(signal, ISOLATION, { value: { report, wrappers: undefined, handler: null } })
  // Methods of the signal itself would hide those of its prototype, so they are replaced.
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

/** @param from the object whose methods are wrapped */
function isolatingMethods(from: AbortSignal): PropertyDescriptorMap {
  /* eslint-disable @typescript-eslint/unbound-method -- they are called with the signal as `this` */
  const add = from.addEventListener
  const remove = from.removeEventListener
  /* eslint-enable @typescript-eslint/unbound-method */
  return {
    addEventListener: {
      configurable: true,
      value(this: IsolatedSignal, type: string, listener: Listener, options?: ListenerOptions) {
        // For an invalid listener, the method of the platform throws its usual error.
        if (!isListener(listener)) {
          add.call(this, type, listener, options)
          return
        }
        // If the listener was added before the signal was isolated, it is removed here. Otherwise it would be called twice.
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
