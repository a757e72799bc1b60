/** The types that describe a race: its world, its actors and steps, and the options of a run. */
import type fc from 'fast-check'
import type { MemoryStore } from '../store/memory-store.js'
import type { RaceClock } from './race-clock.js'

/**
 * The clock, the store and the scheduling functions of one run, which a race passes to your code.
 * @example
 * setup: (race) => createAgentTasks({ clock: race.clock, isAgentBusy, triggerAgentTurn: () => race.pause('the model answers') })
 */
export interface Race<Disk = unknown> {
  /** The simulated clock. Pass it as the option `clock`; only the race moves it. */
  readonly clock: RaceClock
  /** The number of this life of the process: 1, and one more after each crash. */
  readonly life: number
  /** A store in memory that survives a crash. The process may die at each write to it, before the write or after it. */
  readonly store: MemoryStore
  /** What else survives a crash, as the option `disk` made it. Change it inside `message`, so that the process may die there. */
  readonly disk: Disk
  /**
   * Holds a promise back: the returned promise settles as `task` did, in a turn of its own.
   * @param label its name in the order and the timeline. Default `promise`
   */
  readonly schedule: <T>(task: PromiseLike<T>, label?: string) => Promise<T>
  /**
   * Wraps a function so that each promise it returns is held back as by `schedule`.
   * @param label the name of its promises. Default: the function's name
   */
  readonly scheduleFunction: <Args extends unknown[], T>(
    act: (...args: Args) => PromiseLike<T>,
    label?: string,
  ) => (...args: Args) => Promise<T>
  /** Stands for something that takes a while, such as a request. Resolves in a turn of its own, so others may go first. */
  readonly pause: (label: string) => Promise<void>
  /**
   * Does something that survives the process, such as an append to a file or a request to a server. The process may die before `act` and
   * after it; the promise never settles then.
   * @param label its name in the order and the timeline
   * @param act called at once
   */
  readonly message: <T>(label: string, act: () => T | PromiseLike<T>) => Promise<T>
  /** Adds a line to the current event of the timeline. */
  readonly note: (text: string) => void
  /**
   * An `onError` that prints nothing: what it gets is shown in the timeline, and is part of a failure. What uses `race.clock` and has no `onError` of
   * its own reports here.
   */
  readonly onError: (error: unknown, from: { readonly source: string }) => void
}

/** The function of a step. What it returns is awaited and shown in the timeline. */
export type RaceStepFunction<World> = (world: World, race: Race) => unknown

/** A step: a function, or a function with a label for the timeline. A bare function is shown by its name. */
export type RaceStep<World> =
  RaceStepFunction<World> | { readonly label: string; readonly run: RaceStepFunction<World> }

/**
 * An actor as a generator. Other actors may take turns at each `yield`; a string that it yields is the label of its next step.
 * @example
 * async function* buyer(shop) {
 *   const has = shop.stock > 0
 *   yield 'pays'
 *   if (has) shop.stock -= 1
 * }
 */
export type RaceGenerator<World> = (
  world: World,
  race: Race,
) => Generator<unknown, unknown> | AsyncGenerator<unknown, unknown>

/** An actor: a list of steps, each taken after the previous one has settled, or a generator. */
export type RaceActor<World> = readonly RaceStep<World>[] | RaceGenerator<World>

/** The actors that race with each other, by name. */
export type RaceActors<World> = Readonly<Record<string, RaceActor<World>>>

/** A condition. It is broken when it throws, rejects or returns `false`. */
export type RaceCheck<World> = (world: World) => unknown

/**
 * A race, for `exploreRaces` and `replayRace`. Export it, so that the regression test of a failure can import it.
 * @example
 * export const counter: RaceOptions<{ count: number }> = {
 *   setup: () => ({ count: 0 }),
 *   actors: { a: [(world) => (world.count += 1)], b: [(world) => (world.count += 1)] },
 *   atEnd: { 'both count': ({ count }) => count === 2 },
 * }
 */
export interface RaceOptions<World, Input = undefined, Disk = unknown> {
  /** The name that error messages use. Default `race`. */
  readonly name?: string
  /** Where these options are exported, so that the printed regression test can import them. */
  readonly source?: {
    /** The module specifier that the test imports, such as `./delivery-race.js`. */
    readonly module: string
    /** The name of the export. */
    readonly name: string
  }
  /**
   * Lets the process die: between two turns, at each write to `race.store`, and at each `race.message`. Then a new life starts: `setup` builds a
   * new world on what survived, and the steps that no actor has begun go on in it. `true`: at most two crashes in an order; a number: at
   * most that many. Default false.
   */
  readonly crashes?: boolean | number
  /** Makes what survives a crash besides the store: data that `structuredClone` copies. Called once in each run. */
  readonly disk?: () => Disk
  /** Builds the world of one run, or of one life. No actor runs meanwhile. */
  readonly setup: (race: Race<Disk>, input: Input) => World | Promise<World>
  /** The actors, or a function that returns them. It is called in each life. */
  readonly actors: RaceActors<World> | ((world: World, input: Input) => RaceActors<World>)
  /** Conditions that must hold after each turn and at the end, by name. */
  readonly invariants?: Readonly<Record<string, RaceCheck<World>>>
  /** Conditions that must hold at the end, when every actor is done and no timer or promise is left, by name. */
  readonly atEnd?: Readonly<Record<string, RaceCheck<World>>>
  /** Disposes of the world after the run; not of the worlds of lives that crashed. No actor runs meanwhile. */
  readonly teardown?: (world: World) => unknown
  /** `random`: draws orders. `exhaustive`: runs every order; for up to about nine steps. Default `random`. */
  readonly mode?: 'random' | 'exhaustive'
  /** An arbitrary of inputs for `setup` and `actors`. They shrink together with the order. Random mode only. */
  readonly inputs?: fc.Arbitrary<Input>
  /** How many orders random mode draws. Without `inputs`, one that was drawn before is not run again. Default 1000. */
  readonly numRuns?: number
  /** The seed of random mode. Default: a random one, which a failure prints. */
  readonly seed?: number
  /** The path of a failure within the runs of `seed`, as a failure printed it. */
  readonly path?: string
  /** Stops at the first failure: random mode does not shrink, exhaustive mode does not look for a shorter order. Default false. */
  readonly endOnFailure?: boolean
  /** How much of the shrinking a failure prints, as fast-check's `verbose`. Default false. */
  readonly verbose?: boolean | 0 | 1 | 2
  /** The most orders that exhaustive mode may run. Default 100000. */
  readonly maxOrders?: number
  /**
   * Whether deadlines take part: time limits of tasks, turns, deliveries, waits and commands, and timers of yours with the label
   * `{ name, kind: 'deadline' }`. Without it they are never reached, as if there were none. Default false.
   */
  readonly deadlines?: boolean
  /** The time of the clock at the start of each run, in ms since the epoch. Default 0. */
  readonly startTime?: number
  /** The simulated time within which the actors must be done, in ms. Default 3600000. */
  readonly timeoutMs?: number
  /** How long timers still run after every actor is done, in ms of simulated time. Default 60000. */
  readonly drainMs?: number
  /** The most turns of one run; more are reported as a loop. Default 1000. */
  readonly maxEvents?: number
  /** How many microtasks run after each turn. Raise it for chains of more promises than this. Default 64. */
  readonly settleTicks?: number
}
