/** A time that can be waited for, and called off. */
import { clearLongTimeout, setLongTimeout, type Clock } from '../clock.js'

export interface Delay {
  /** Resolves when the time has passed; never, when it was called off before. */
  readonly passed: Promise<void>
  cancel(): void
}

export function createDelay(clock: Clock, ms: number): Delay {
  let resolve: () => void = () => undefined
  const passed = new Promise<void>((done) => (resolve = done))
  const timer = setLongTimeout(clock, resolve, ms)
  return { passed, cancel: () => clearLongTimeout(clock, timer) }
}
