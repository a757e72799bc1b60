/** The event loop and the outbox of the model: microtasks, answers of tools, timers, and events that follow a change. */
import { createJumpingClock, type JumpingClock } from '../../support/jumping-clock.js'

export interface ModelledLoop {
  readonly clock: JumpingClock
  /** Runs in a later microtask. */
  later(run: () => void): void
  /** Runs when no microtask is left. An answer of a tool takes longer than what the manager does by itself. */
  afterwards(run: () => void): void
  drain(): void
  advance(ms: number): void
}

/** @param start the time of its clock, in ms since the epoch */
export function createModelledLoop(start: number): ModelledLoop {
  const clock = createJumpingClock(start)
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
      const until = clock.monotonic() + ms
      while (clock.nextDue !== undefined && clock.nextDue <= until) {
        clock.runNext()
        drain()
      }
      clock.advance(until - clock.monotonic())
    },
  }
}

export interface ModelledOutbox {
  /** Makes a change. When the outermost batch has returned, the items that were pushed run, in order and never nested. */
  batch<T>(change: () => T): T
  push(item: () => void): void
}

export function createModelledOutbox(): ModelledOutbox {
  const items: (() => void)[] = []
  let depth = 0
  let isEmptying = false
  return {
    push: (item) => void items.push(item),
    batch: (change) => {
      depth += 1
      const result = change()
      depth -= 1
      if (depth === 0 && !isEmptying) {
        isEmptying = true
        for (let next = items.shift(); next !== undefined; next = items.shift()) next()
        isEmptying = false
      }
      return result
    },
  }
}
