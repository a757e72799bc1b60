/**
 * Lets things take turns in the order that a `RaceOrder` says, for a property that wants to schedule by itself: the part of
 * `fc.Scheduler` that races need, with orders that shrink and never depend on what another run has drawn.
 */
import type { Chooser, RaceOrder } from './race-order.js'

/** One item of a sequence. */
export interface ScheduledItem {
  /** What it is called in the printed order. */
  readonly label: string
  /** Does it; nothing else takes its turn until what it returns has settled. */
  readonly builder: () => Promise<unknown>
}

/** Lets things take turns. Made by `createRaceScheduler`. */
export interface RaceScheduler {
  /** Promises the same as `task`, when its turn has come. */
  schedule<T>(task: Promise<T>, label?: string): Promise<T>
  /** A function like `act` whose promises settle when their turn has come. */
  scheduleFunction<Args extends unknown[], T>(
    act: (...args: Args) => Promise<T>,
    label?: string,
  ): (...args: Args) => Promise<T>
  /**
   * Does the items one after the other, each when its turn has come. An item that rejects ends the sequence.
   * @returns `task` settles when the sequence has ended
   */
  scheduleSequence(items: readonly ScheduledItem[]): { readonly task: Promise<{ done: boolean; faulty: boolean }> }
  /** How many things wait for their turn. */
  count(): number
  /** Lets one thing take its turn, and waits for it. False when nothing waited. */
  waitOne(): Promise<boolean>
  /** Lets things take their turns until nothing waits for one. */
  waitIdle(): Promise<void>
  /** What has happened so far, one line for each turn. */
  toString(): string
}

interface Waiting {
  readonly label: string
  /** Who goes on when it is taken. */
  readonly line: number
  readonly take: () => Promise<unknown>
}

/**
 * Makes a scheduler that follows an order.
 * @param order an order of `raceOrders`
 * @example
 * const scheduler = createRaceScheduler(order)
 * void scheduler.schedule(save('a'), 'a is saved')
 * void scheduler.schedule(save('b'), 'b is saved')
 * await scheduler.waitIdle()
 */
export function createRaceScheduler(order: RaceOrder): RaceScheduler {
  const chooser: Chooser = order.chooser()
  const waiting: Waiting[] = []
  const taken: string[] = []
  let lines = 0
  let last = -1

  const offer = (label: string, line: number, take: () => Promise<unknown>): void => {
    waiting.push({ label, line, take })
  }
  const schedule = <T>(task: Promise<T>, label = 'promise'): Promise<T> =>
    new Promise((resolve, reject) => {
      offer(label, (lines += 1), () => {
        task.then(resolve, reject)
        return task.catch(() => undefined)
      })
    })
  const waitOne = async (): Promise<boolean> => {
    if (waiting.length === 0) return false
    const current = waiting.findIndex(({ line }) => line === last)
    const sorted =
      current > 0 ? waiting.toSpliced(current, 1).toSpliced(0, 0, ...waiting.slice(current, current + 1)) : waiting
    const next = sorted[sorted.length > 1 ? chooser.choose(sorted.map(({ label }) => label)) : 0]
    if (next === undefined) return false
    waiting.splice(waiting.indexOf(next), 1)
    last = next.line
    taken.push(next.label)
    await next.take()
    await letPromisesGoOn()
    return true
  }

  return {
    schedule,
    scheduleFunction:
      (act, label = act.name) =>
      (...args) =>
        schedule(act(...args), label),
    scheduleSequence: (items) => {
      const line = (lines += 1)
      const task = (async () => {
        for (const { label, builder } of items) {
          const isDone = await new Promise<boolean>((resolve) => {
            offer(label, line, () =>
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
      await letPromisesGoOn()
      while (await waitOne()) continue
    },
    toString: () => taken.map((label, turn) => `${turn + 1}. ${label}`).join('\n'),
  }
}

/** More than the promises between the end of one item and the start of the next. */
const TICKS = 12

async function letPromisesGoOn(): Promise<void> {
  for (let tick = 0; tick < TICKS; tick += 1) await Promise.resolve()
}
