/** The explored orders of a race, as a tree of their choices. It shows whether an order is new, and which order to run next. */
import { AgentTasksError } from '../errors.js'
import type { Chooser } from './race-order.js'

/** One choice of an order: the index that was chosen (`taken`), and the number of possibilities (`of`). */
export interface Choice {
  readonly taken: number
  readonly of: number
  /** For a choice about a crash: the turn, write or message at which the process may crash. Undefined for any other choice. */
  readonly site: string | undefined
}

/** Marks a branch whose orders were all run. */
const DONE = 'done'

interface Branch extends Omit<Choice, 'taken'> {
  /** The branch after each choice; undefined if no order with that choice was run. */
  readonly next: (Branch | typeof DONE | undefined)[]
}

export class OrderTree {
  #root: Branch | typeof DONE | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get isComplete(): boolean {
    return this.#root === DONE
  }

  /** Whether the order that a chooser makes was run already. */
  has(chooser: Chooser): boolean {
    let branch = this.#root
    while (typeof branch === 'object') {
      const { of, site, next } = branch
      branch = next[site === undefined ? chooser.choose(unnamed(of)) : chooser.crash(unnamed(of - 1), site)]
    }
    return branch === DONE
  }

  /** Returns a chooser for the next order that was not run, depth first. */
  next(): Chooser {
    let branch = this.#root
    const take = (of: number): number => {
      const taken = typeof branch === 'object' ? firstOpen(branch) : 0
      if (typeof branch === 'object') expectSame(branch.of, of)
      branch = typeof branch === 'object' ? branch.next[taken] : undefined
      return taken
    }
    return { choose: ({ length }) => take(length), crash: ({ length }) => take(length + 1) }
  }

  /**
   * Adds an order that was run.
   * @throws AgentTasksError `RACE_NOT_DETERMINISTIC` if the same choices led to another number of possibilities before
   */
  add(choices: readonly Choice[]): void {
    const path: { branch: Branch; taken: number }[] = []
    let branch = this.#root
    for (const { taken, of, site } of choices) {
      if (branch === DONE) throw notDeterministic(0, of)
      branch ??= { of, site, next: Array.from({ length: of }, () => undefined) }
      expectSame(branch.of, of)
      path.push({ branch, taken })
      branch = branch.next[taken]
    }
    if (typeof branch === 'object') throw notDeterministic(branch.of, 0)
    if (branch === DONE) return
    this.#size += 1
    let below: Branch | typeof DONE = DONE
    for (const { branch, taken } of path.reverse()) {
      branch.next[taken] = below
      below = firstOpen(branch) === -1 ? DONE : branch
    }
    this.#root = below
  }
}

/** Delegates to another chooser and records its choices. */
export class RecordedChooser implements Chooser {
  readonly choices: Choice[] = []
  readonly #chooser: Chooser

  constructor(chooser: Chooser) {
    this.#chooser = chooser
  }

  choose(names: readonly string[]): number {
    const taken = this.#chooser.choose(names)
    this.choices.push({ taken, of: names.length, site: undefined })
    return taken
  }

  crash(points: readonly string[], site: string): number {
    const taken = this.#chooser.crash(points, site)
    this.choices.push({ taken, of: points.length + 1, site })
    return taken
  }
}

const unnamed = (length: number): string[] => Array.from({ length }, () => '')

const firstOpen = ({ next }: Branch): number => next.findIndex((branch) => branch !== DONE)

function expectSame(before: number, now: number): void {
  if (before !== now) throw notDeterministic(before, now)
}

function notDeterministic(before: number, now: number): AgentTasksError {
  return new AgentTasksError(
    'RACE_NOT_DETERMINISTIC',
    `the same order led to ${before} possibilities before and to ${now} now. ${NOT_DETERMINISTIC_HINT}`,
  )
}

export const NOT_DETERMINISTIC_HINT =
  'Look for anything besides the race that decides what happens: real time, Math.random, I/O, or state that an earlier run left behind.'
