/**
 * What stands in for the event loop and the outbox in the model of the lanes: microtasks, answers of tools, timers, and telling
 * after a change instead of inside it.
 */
import { createManualClock, type ManualClock } from '../../../src/testing/manual-clock.js'

export interface ModelledLoop {
  readonly clock: ManualClock
  /** In a later microtask. */
  later(run: () => void): void
  /** When nothing else is under way: what a tool answers takes longer than what the manager does by itself. */
  afterwards(run: () => void): void
  drain(): void
  advance(ms: number): void
}

/** @param start what its clock shows, in ms since the epoch */
export function createModelledLoop(start: number): ModelledLoop {
  const clock = createManualClock(start)
  const microtasks: (() => void)[] = []
  const answers: (() => void)[] = []
  const drain = (): void => {
    for (;;) {
      const next = microtasks.shift() ?? answers.shift()
      if (next === undefined) return
      next()
    }
  }
  return {
    clock,
    later: (run) => void microtasks.push(run),
    afterwards: (run) => void answers.push(run),
    drain,
    advance: (ms) => {
      const until = clock.now() + ms
      while (clock.nextDue !== undefined && clock.nextDue <= until) {
        clock.runNext()
        drain()
      }
      clock.advance(until - clock.now())
    },
  }
}

export interface Telling {
  /** Runs a change to its end; then, and not before, what it had to tell is told, in order. */
  change<T>(run: () => T): T
  tell(run: () => void): void
}

/** Tells after the outermost change; what is changed while something is told is told after what waits. */
export function createTelling(): Telling {
  const waiting: (() => void)[] = []
  let changes = 0
  let isTelling = false
  return {
    tell: (run) => void waiting.push(run),
    change: (run) => {
      changes += 1
      const result = run()
      changes -= 1
      if (changes === 0 && !isTelling) {
        isTelling = true
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) next()
        isTelling = false
      }
      return result
    },
  }
}
