/**
 * Records what code leaves behind: timers, abort listeners, open subscriptions and heartbeats. `leftovers-setup.ts` uses it in every test. It counts
 * only what `src` and `machines` made, because a test may leave its own.
 */
import { getEventListeners } from 'node:events'
import { Observable, type Subscription } from 'rxjs'
import type { Clock } from '../../src/system/clock.js'

/** Something that was left behind, and where it was made. */
export interface Leftover {
  readonly kind: 'timer' | 'abort listener' | 'subscription' | 'heartbeat'
  /** The frames in `src` and `machines` that made it, innermost first. */
  readonly madeBy: readonly string[]
}

interface Made {
  readonly kind: Leftover['kind']
  readonly trace: Error
  readonly isLeft: () => boolean
  /** Computed from the trace when it is needed. */
  madeBy?: readonly string[]
}

/** The maximum number of records of one test. A property makes more. */
const MAX_RECORDED = 2000

let recorded: Made[] = []

export interface Disposable {
  dispose(): Promise<void>
}

/** The managers that a test has made. */
let managers: Disposable[] = []

/** The maximum number of managers that are recorded. Only properties make more, and they dispose them. */
const MAX_MANAGERS = 1000

/** Records a manager that a test makes. */
export function note<Manager extends Disposable>(manager: Manager): Manager {
  if (managers.length < MAX_MANAGERS) managers.push(manager)
  return manager
}

/** The managers that were recorded. */
export const madeManagers = (): readonly Disposable[] => managers

/**
 * Records something that the code that made it must remove.
 * @param isLeft returns whether it is still there. Called later
 */
export function record(kind: Leftover['kind'], isLeft: () => boolean): void {
  if (recorded.length >= MAX_RECORDED) return
  const { stackTraceLimit } = Error
  // Long enough for the frames of RxJS and XState, which come before the frame of the code that made it.
  Error.stackTraceLimit = 40
  // Cheap, because V8 formats the stack of an error only when it is read.
  recorded.push({ kind, trace: new Error(), isLeft })
  Error.stackTraceLimit = stackTraceLimit
}

/** Forgets all records. */
export function forget(): void {
  recorded = []
  managers = []
}

/** Returns what was recorded and is still there. */
export function leftovers(): Leftover[] {
  // Drops these records for good: something removed does not come back, and what other code made never counts.
  recorded = recorded.filter((made) => made.isLeft() && isOurs(made))
  return recorded.map((made) => ({ kind: made.kind, madeBy: madeBy(made) }))
}

const madeBy = (made: Made): readonly string[] => (made.madeBy ??= makersOf(made.trace))

function isOurs(made: Made): boolean {
  const [maker] = madeBy(made)
  return maker !== undefined && !GRACE.test(maker)
}

/** Counts what is left, by kind and origin. For a test that repeats something and expects that nothing grows. */
export function countLeftovers(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind, madeBy } of leftovers()) {
    const key = `${kind} of ${madeBy[0] ?? ''}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

/** Returns the frames of `src` and `machines` at the top of the stack. There are none if the stack begins in a test, in another package or in Node. */
function makersOf({ stack = '' }: Error): string[] {
  const frames = stack.split('\n').flatMap((line) => FRAME.exec(line)?.[1] ?? [])
  const makers = frames.filter((frame) => !PASSING.test(frame))
  const first = makers.findIndex((frame) => !/^(src|machines)\//.test(frame))
  return first === -1 ? makers : makers.slice(0, first)
}

const FRAME = /((?:(?<=\/)(?:src|machines|test|node_modules)\/|node:)[^?)\s]*)/

/** Frames that only pass a call on. The code that calls them made it. */
const PASSING =
  /^(test\/support\/leftovers|src\/(isolation\/isolated-(signal|abort|observable)|system\/clock|testing\/[\w-]+)\.ts|node_modules\/(rxjs|xstate)\/)/

/** The timer of a run that was aborted and does not end. It runs until the grace period is over, also after `dispose`. */
const GRACE = /^src\/engine\/in-process\.ts/

let areGlobalsWatched = false

/** Records the abort listeners and subscriptions that are made from now on. */
export function watchGlobals(): void {
  if (areGlobalsWatched) return
  areGlobalsWatched = true
  wrap(AbortSignal.prototype, 'addEventListener', (signal, [type, listener]) => {
    if (type === 'abort' && typeof listener === 'function') {
      record(
        'abort listener',
        () => !signal.aborted && getEventListeners(signal, 'abort').some((one) => one === listener),
      )
    }
  })
  wrap(Observable.prototype, 'subscribe', (_observable, _args, subscription) => {
    const { closed } = subscription as Subscription
    if (!closed) record('subscription', () => !(subscription as Subscription).closed)
  })
}

/** Calls `after` after each call of a method, with the object, the arguments and the result. */
function wrap<Of extends object>(
  prototype: Of,
  name: string,
  after: (self: Of, args: readonly unknown[], result: unknown) => void,
): void {
  const method = Reflect.get(prototype, name) as (...args: unknown[]) => unknown
  const value = function (this: Of, ...args: unknown[]): unknown {
    const result = method.apply(this, args)
    after(this, args, result)
    return result
  }
  Object.defineProperty(prototype, name, { configurable: true, writable: true, value })
}

/** A clock whose timers are recorded. */
export function recordingClock<Timers extends Pick<Clock, 'setTimeout' | 'clearTimeout'>>(clock: Timers): Timers {
  const pending = new Set<unknown>()
  const timers: Pick<Clock, 'setTimeout' | 'clearTimeout'> = {
    setTimeout: (run, ms) => {
      const timer = clock.setTimeout(() => {
        pending.delete(timer)
        run()
      }, ms)
      pending.add(timer)
      record('timer', () => pending.has(timer))
      return timer
    },
    clearTimeout: (timer) => {
      pending.delete(timer)
      clock.clearTimeout(timer)
    },
  }
  return Object.defineProperties({ ...timers } as Timers, {
    ...Object.getOwnPropertyDescriptors(clock),
    ...Object.getOwnPropertyDescriptors(timers),
  })
}
