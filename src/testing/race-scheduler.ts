/**
 * A scheduler for a property that does its own scheduling. It has those methods of `fc.Scheduler` that races need. It follows a `RaceOrder`, so its
 * orders shrink, and do not depend on earlier runs.
 */
import { runMicrotasks } from './microtasks.js'
import { chooserOf, type RaceOrder } from './race-order.js'

/** One item of a sequence. */
export interface ScheduledItem {
  /** The name of the item in the printed order. */
  readonly label: string
  /** Called when it is the item's turn. The next turn starts when the promise has settled. */
  readonly builder: () => Promise<unknown>
}

/** Runs scheduled work one turn at a time, in a given order. `createRaceScheduler` creates it. */
export interface RaceScheduler {
  /**
   * Delays a promise. The returned promise settles as `task` does, but only when it gets a turn.
   * @param task the promise to delay
   * @param label its name in the printed order. Default `promise`
   */
  schedule<T>(task: Promise<T>, label?: string): Promise<T>
  /**
   * Wraps a function, and delays each promise that the function returns, as `schedule` does.
   * @param act the function
   * @param label the name of its promises in the printed order. Default: the function's name
   */
  scheduleFunction<Args extends unknown[], T>(
    act: (...args: Args) => Promise<T>,
    label?: string,
  ): (...args: Args) => Promise<T>
  /**
   * Runs items one after the other, each in a turn of its own. An item that rejects ends the sequence.
   * @param items the items, in order
   * @returns `task`, which resolves when the sequence has ended. Its `faulty` is true if an item rejected
   */
  scheduleSequence(items: readonly ScheduledItem[]): { readonly task: Promise<{ done: boolean; faulty: boolean }> }
  /** How many promises and items are waiting for their turn. */
  count(): number
  /** Takes one turn and waits for its end. Resolves with false when nothing was waiting. */
  waitOne(): Promise<boolean>
  /** Takes turns until nothing is waiting. */
  waitIdle(): Promise<void>
  /** The turns so far, one line each. */
  toString(): string
}

interface Waiting {
  readonly label: string
  /** The number of the sequence that the item belongs to. Choice 0 of an order continues with the sequence of the last turn. */
  readonly sequence: number
  readonly take: () => Promise<unknown>
}

/**
 * Creates a scheduler that follows an order.
 * @param order an order drawn from `raceOrders`
 * @returns the scheduler
 * @example
 * const scheduler = createRaceScheduler(order)
 * void scheduler.schedule(save('a'), 'a is saved')
 * void scheduler.schedule(save('b'), 'b is saved')
 * await scheduler.waitIdle()
 */
export function createRaceScheduler(order: RaceOrder): RaceScheduler {
  const chooser = chooserOf(order)
  const waiting: Waiting[] = []
  const taken: string[] = []
  let sequences = 0
  let last = -1

  const offer = (label: string, sequence: number, take: () => Promise<unknown>): void => {
    waiting.push({ label, sequence, take })
  }
  const schedule = <T>(task: Promise<T>, label = 'promise'): Promise<T> =>
    new Promise((resolve, reject) => {
      offer(label, (sequences += 1), () => {
        task.then(resolve, reject)
        return task.catch(() => undefined)
      })
    })
  const waitOne = async (): Promise<boolean> => {
    if (waiting.length === 0) return false
    const current = waiting.findIndex(({ sequence }) => sequence === last)
    const sorted =
      current > 0 ? waiting.toSpliced(current, 1).toSpliced(0, 0, ...waiting.slice(current, current + 1)) : waiting
    const next = sorted[sorted.length > 1 ? chooser.choose(sorted.map(({ label }) => label)) : 0]
    if (next === undefined) return false
    waiting.splice(waiting.indexOf(next), 1)
    last = next.sequence
    taken.push(next.label)
    await next.take()
    await runMicrotasks(TICKS)
    return true
  }

  return {
    schedule,
    scheduleFunction:
      (act, label = act.name) =>
      (...args) =>
        schedule(act(...args), label),
    scheduleSequence: (items) => {
      const sequence = (sequences += 1)
      const task = (async () => {
        for (const { label, builder } of items) {
          const isDone = await new Promise<boolean>((resolve) => {
            offer(label, sequence, () =>
              builder().then(
                () => resolve(true),
                () => resolve(false),
              ),
            )
          })
          if (!isDone) return { done: false, faulty: true }
        }
        return { done: true, faulty: false }
      })()
      return { task }
    },
    count: () => waiting.length,
    waitOne,
    waitIdle: async () => {
      await runMicrotasks(TICKS)
      while (await waitOne()) continue
    },
    toString: () => taken.map((label, turn) => `${turn + 1}. ${label}`).join('\n'),
  }
}

/** How many microtasks run after a turn. The next item of a sequence needs fewer to be offered. */
const TICKS = 12
