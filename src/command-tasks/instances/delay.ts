/** A delay that can be awaited and cancelled. */
import { clearLongTimeout, setLongTimeout, type Clock, type TimerLabel } from '../../system/clock.js'

export interface Delay {
  /** Resolves when the time has passed. After `cancel`, it never settles. */
  readonly passed: Promise<void>
  cancel(): void
}

export function createDelay(clock: Clock, ms: number, label?: TimerLabel): Delay {
  let resolve: () => void = () => undefined
  const passed = new Promise<void>((done) => (resolve = done))
  const timer = setLongTimeout(clock, resolve, ms, label)
  return { passed, cancel: () => clearLongTimeout(clock, timer) }
}
