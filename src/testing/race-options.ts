/** The types that describe a race: its world, its actors and steps, and the options of a run. */
import type fc from 'fast-check'
import type { MemoryStore } from '../store/memory-store.js'
import type { RaceClock } from './race-clock.js'

/**
 * The clock, the store and the scheduling functions of one run, which a race passes to your code.
 * @typeParam Disk the data that survives a crash
 * @example
 * setup: (race) => createAgentTasks({ clock: race.clock, isAgentBusy, triggerAgentTurn: () => race.pause('the model answers') })
 */
export interface Race<Disk = unknown> {
  /** The simulated clock. Pass it as the option `clock`; only the race moves it. */
  readonly clock: RaceClock
  /** The number of the present life of the simulated process: 1 at first, and one more after each crash. */
  readonly life: number
  /** A store in memory that survives a crash. With the option `crashes`, the process may die before or after each write to it. */
  readonly store: MemoryStore
  /** What else survives a crash. The option `disk` makes it. Change it only inside `message`, so that the process may die before or after the change. */
  readonly disk: Disk
  /**
   * Delays a promise. The returned promise settles as `task` does, but only when it gets a turn.
   * @param task the promise to delay
   * @param label its name in the order and the timeline. Default `promise`
   */
  readonly schedule: <T>(task: PromiseLike<T>, label?: string) => Promise<T>
  /**
   * Wraps a function, and delays each promise that the function returns, as `schedule` does.
   * @param act the function
   * @param label the name of its promises. Default: the function's name
   */
  readonly scheduleFunction: <Args extends unknown[], T>(
    act: (...args: Args) => PromiseLike<T>,
    label?: string,
  ) => (...args: Args) => Promise<T>
  /**
   * Stands for something that takes time, such as a request. Resolves when it gets a turn, so that other actors can take turns before.
   * @param label its name in the order and the timeline
   */
  readonly pause: (label: string) => Promise<void>
  /**
   * Does something that a crash does not undo, such as an append to a file or a request to a server. With the option `crashes`, the process may die
   * before or after `act`. The promise then never settles.
   * @param label its name in the order and the timeline
   * @param act what to do. It is called at once
   */
  readonly message: <T>(label: string, act: () => T | PromiseLike<T>) => Promise<T>
  /** Adds a line to the current event of the timeline. */
  readonly note: (text: string) => void
  /**
   * Pass it as the option `onError`. It prints nothing. The timeline shows the errors, and a failure lists them in `reports`. Code that uses
   * `race.clock` and has no other `onError` reports here by itself.
   */
  readonly onError: (error: unknown, from: { readonly source: string }) => void
}

/** The function of a step. What it returns is awaited and shown in the timeline. */
export type RaceStepFunction<World> = (world: World, race: Race) => unknown

/** A step: a function, or a function with a label for the timeline. A bare function is shown by its name. */
export type RaceStep<World> =
  RaceStepFunction<World> | { readonly label: string; readonly run: RaceStepFunction<World> }

/**
 * An actor as a generator function. Other actors may take turns at each `yield`. A string that is yielded is the label of the next step.
 * @typeParam World what `setup` returns
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
 * A race, for `exploreRaces` and `replayRace`. Export it from a module, so that the regression test of a failure can import it.
 * @typeParam World what `setup` returns. Steps and conditions receive it
 * @typeParam Input what `inputs` draws for each run. `setup` and `actors` receive it
 * @typeParam Disk what the option `disk` returns: the data that survives a crash
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
   * How often the simulated process may crash in one order: `true` for at most twice, or a number. It may crash between two turns, at each write to
   * `race.store`, and at each `race.message`. Default false.
   *
   * After a crash, `setup` builds a new world from the data that survived. An actor skips the step that it was in, and continues with the next one of
   * its list. An actor that is a generator does not continue if it had begun.
   */
  readonly crashes?: boolean | number
  /** Returns what survives a crash besides the store: data that `structuredClone` can copy. Called once in each run. */
  readonly disk?: () => Disk
  /** Builds the world, which the steps use. Called at the start of each run, and again after each crash. No actor takes a turn meanwhile. */
  readonly setup: (race: Race<Disk>, input: Input) => World | Promise<World>
  /** The actors by name, or a function that returns them. The function is called after each `setup`. */
  readonly actors: RaceActors<World> | ((world: World, input: Input) => RaceActors<World>)
  /** Conditions that must hold after each turn and at the end, by name. */
  readonly invariants?: Readonly<Record<string, RaceCheck<World>>>
  /** Conditions that must hold at the end, when every actor is done and no timer or promise is left, by name. */
  readonly atEnd?: Readonly<Record<string, RaceCheck<World>>>
  /** Disposes the world after the run. It is not called for a world that ended with a crash. No actor takes a turn meanwhile. */
  readonly teardown?: (world: World) => unknown
  /** `random`: draws orders. `exhaustive`: runs every order, which takes too long with more than about nine steps. Default `random`. */
  readonly mode?: 'random' | 'exhaustive'
  /** An arbitrary that draws the input of each run. An input shrinks together with the order. Only in random mode. */
  readonly inputs?: fc.Arbitrary<Input>
  /** How many orders random mode draws. Without `inputs`, an order that was drawn before is not run again. Default 1000. */
  readonly numRuns?: number
  /** The seed of random mode. Default: a random one, which a failure prints. */
  readonly seed?: number
  /** Runs one failure again: the `path` that the failure printed. Set `seed` as well. */
  readonly path?: string
  /** Whether to stop at the first failure. Random mode then does not shrink it, and exhaustive mode does not look for a shorter one. Default false. */
  readonly endOnFailure?: boolean
  /** How much of the shrinking a failure prints. The values are those of fast-check's option `verbose`. Default false. */
  readonly verbose?: boolean | 0 | 1 | 2
  /** The maximum number of orders that exhaustive mode may run. Default 100000. */
  readonly maxOrders?: number
  /**
   * Whether deadlines can pass. Deadlines are the time limits of tasks, turns, deliveries, waits and commands, and your own timers with the label `{ name, kind:
   * 'deadline' }`. With false, no deadline ever passes. Default false.
   */
  readonly deadlines?: boolean
  /** The time of the clock at the start of each run, in ms since the epoch. Default 0. */
  readonly startTime?: number
  /** The simulated time within which the actors must be done, in ms. Default 3600000. */
  readonly timeoutMs?: number
  /** How long timers still run after every actor is done, in ms of simulated time. Default 60000. */
  readonly drainMs?: number
  /** The maximum number of turns of one run. More turns count as an endless loop, which fails the run. Default 1000. */
  readonly maxEvents?: number
  /** How many microtasks run after each turn. Raise it if your code awaits longer chains of promises. Default 64. */
  readonly settleTicks?: number
}
