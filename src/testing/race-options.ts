/** What a race is described by, and the check of it: a field, what came, and what was expected. */
import type fc from 'fast-check'
import { InvalidInputError } from '../errors.js'
import type { RaceClock } from './race-clock.js'

/**
 * What a race hands to the code that runs in it.
 * @example
 * setup: (race) => createAgentTasks({ clock: race.clock, isAgentBusy, triggerAgentTurn: () => race.pause('the model answers') })
 */
export interface Race {
  /** The simulated clock: pass it on as the option `clock`. Only the race moves it. */
  readonly clock: RaceClock
  /** Promises the same as `task`, but settles when the race says so: from the time that `task` has settled it may come next. */
  schedule<T>(task: PromiseLike<T>, label?: string): Promise<T>
  /** A function like `act` whose promises settle when the race says so. */
  scheduleFunction<Args extends unknown[], T>(
    act: (...args: Args) => PromiseLike<T>,
    label?: string,
  ): (...args: Args) => Promise<T>
  /** Waits until the race says so: other things may happen in between. Stands for whatever takes a while. */
  pause(label: string): Promise<void>
  /** Says what happened, in the printed timeline. */
  note(text: string): void
}

/** One step of an actor. */
export type RaceStepFunction<World> = (world: World, race: Race) => unknown

/** A step, with what it is called in the printed timeline; a bare function is called by its own name. */
export type RaceStep<World> =
  RaceStepFunction<World> | { readonly label: string; readonly run: RaceStepFunction<World> }

/**
 * An actor as a generator: other actors may go on at each `yield`, and a text that it yields is what its next step is
 * called.
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

/** An actor: its steps, taken in their order, each when the one before has settled. */
export type RaceActor<World> = readonly RaceStep<World>[] | RaceGenerator<World>

/** Actors by name. They race with each other. */
export type RaceActors<World> = Readonly<Record<string, RaceActor<World>>>

/** Something that must hold: it fails by throwing, rejecting, or returning `false`. */
export type RaceCheck<World> = (world: World) => unknown

/**
 * The race of `exploreRaces` and `replayRace`. Export it, so that the regression test of a failure can import it.
 * @example
 * export const counter: RaceOptions<{ count: number }> = {
 *   setup: () => ({ count: 0 }),
 *   actors: { a: [(world) => (world.count += 1)], b: [(world) => (world.count += 1)] },
 *   atEnd: { 'both count': ({ count }) => count === 2 },
 * }
 */
export interface RaceOptions<World, Input = undefined> {
  /** What it is called when it fails. Default `race`. */
  readonly name?: string
  /** Where these options are exported from, for the regression test that a failure prints. */
  readonly source?: {
    /** What the test imports, relative to itself: `./delivery-race.js`. */
    readonly module: string
    /** The name that it exports them by. */
    readonly name: string
  }
  /** Builds the world of one run. Nothing races with it. */
  readonly setup: (race: Race, input: Input) => World | Promise<World>
  /** Who races. */
  readonly actors: RaceActors<World> | ((world: World, input: Input) => RaceActors<World>)
  /** What must hold after each step, and at the end. */
  readonly invariants?: Readonly<Record<string, RaceCheck<World>>>
  /** What must hold at the end: when every actor is done and nothing more happens. */
  readonly atEnd?: Readonly<Record<string, RaceCheck<World>>>
  /** Puts the world away. Nothing races with it. */
  readonly teardown?: (world: World) => unknown
  /** `random`: orders at random. `exhaustive`: every order, for a script of up to about nine steps. Default `random`. */
  readonly mode?: 'random' | 'exhaustive'
  /** An input for each random run: `setup` and `actors` get it, and it shrinks with the order. */
  readonly inputs?: fc.Arbitrary<Input>
  /** How many random runs. Default 1000. */
  readonly numRuns?: number
  /** The seed of the random runs. Default: a random one, which a failure prints. */
  readonly seed?: number
  /** Where in the runs of `seed` the failure was, as a failure printed it. */
  readonly path?: string
  /** Take the first failure as it is: no search for a shorter one; an exhaustive run stops there. Default false. */
  readonly endOnFailure?: boolean
  /** How much a failure says of the other failures on the way: as fast-check's `verbose`. Default false. */
  readonly verbose?: boolean | 0 | 1 | 2
  /** The most orders that an exhaustive run may need. Default 100000. */
  readonly maxOrders?: number
  /**
   * `races`: a timer that is set may become due before anything else happens. `waits`: time passes only when nothing
   * else can happen. Default `races`.
   */
  readonly time?: 'races' | 'waits'
  /** What the clock shows at the start of each run, in ms since the epoch. Default 0. */
  readonly startTime?: number
  /** By when the actors of a run must be done, in ms of simulated time. Default 3600000. */
  readonly timeoutMs?: number
  /** How long timers still run when every actor is done, in ms of simulated time, before the end. Default 60000. */
  readonly drainMs?: number
  /** The most steps, promises and timers of one run before it is taken for a loop. Default 1000. */
  readonly maxEvents?: number
  /** How many promises may follow each other within one step, before the next may begin. Default 64. */
  readonly settleTicks?: number
}

/** The numbers among the options, with what each must be. */
const numbers = {
  numRuns: 1,
  maxOrders: 1,
  startTime: 0,
  timeoutMs: 0,
  drainMs: 0,
  maxEvents: 1,
  settleTicks: 1,
} as const satisfies Partial<Record<keyof RaceOptions<unknown>, number>>

const known: readonly string[] = [
  ...['name', 'source', 'setup', 'actors', 'invariants', 'atEnd', 'teardown', 'mode', 'inputs', 'seed', 'path'],
  ...['endOnFailure', 'verbose', 'time', 'order', 'input'],
  ...Object.keys(numbers),
]

/** @throws InvalidInputError for the first field that does not fit */
export function checkRaceOptions<World, Input>(options: RaceOptions<World, Input>): void {
  const given: unknown = options
  if (typeof given !== 'object' || given === null) throw new InvalidInputError('options', given, 'an object')
  const fields = given as Record<string, unknown>
  for (const name of Object.keys(fields)) {
    if (!known.includes(name)) throw new InvalidInputError(`options.${name}`, fields[name], 'no such field')
  }
  const expect = (name: string, isRight: boolean, expected: string): void => {
    if (!isRight) throw new InvalidInputError(`options.${name}`, fields[name], expected)
  }
  const optional = (name: string, type: string, expected: string): void =>
    expect(name, fields[name] === undefined || typeof fields[name] === type, expected)
  const oneOf = (name: string, values: readonly unknown[]): void =>
    expect(name, fields[name] === undefined || values.includes(fields[name]), `one of ${values.join(', ')}`)

  expect('setup', typeof fields['setup'] === 'function', 'a function that builds the world of a run')
  const { actors } = fields
  expect(
    'actors',
    typeof actors === 'function' || (typeof actors === 'object' && actors !== null),
    'actors by name, or a function that returns them',
  )
  if (typeof actors === 'object') checkActors(actors)
  for (const name of ['invariants', 'atEnd'] as const) checkChecks(name, fields[name])
  const { source } = fields
  expect(
    'source',
    source === undefined || (typeof source === 'object' && source !== null && 'module' in source && 'name' in source),
    '{ module, name }',
  )
  optional('teardown', 'function', 'a function')
  optional('name', 'string', 'a string')
  optional('path', 'string', 'a path that a failure printed')
  optional('endOnFailure', 'boolean', 'true or false')
  oneOf('mode', ['random', 'exhaustive'])
  oneOf('time', ['races', 'waits'])
  oneOf('verbose', [false, true, 0, 1, 2])
  expect('seed', fields['seed'] === undefined || Number.isInteger(fields['seed']), 'an integer')
  for (const [name, least] of Object.entries(numbers)) {
    const value = fields[name]
    expect(name, value === undefined || (typeof value === 'number' && value >= least), `a number >= ${least}`)
  }
  if (fields['mode'] === 'exhaustive') {
    for (const name of ['inputs', 'seed', 'path', 'numRuns'] as const) {
      expect(name, fields[name] === undefined, 'none in exhaustive mode, which tries every order of one script')
    }
  }
}

function checkChecks(name: string, checks: unknown): void {
  if (checks === undefined) return
  if (typeof checks !== 'object' || checks === null) {
    throw new InvalidInputError(`options.${name}`, checks, 'functions by name')
  }
  for (const [key, check] of Object.entries(checks)) {
    if (typeof check !== 'function') throw new InvalidInputError(`options.${name}.${key}`, check, 'a function')
  }
}

/** @throws InvalidInputError for the first actor that is none */
export function checkActors(actors: unknown): asserts actors is RaceActors<unknown> {
  if (typeof actors !== 'object' || actors === null) throw new InvalidInputError('actors', actors, 'actors by name')
  const all = Object.entries(actors)
  if (all.length === 0) throw new InvalidInputError('actors', actors, 'at least one actor')
  for (const [name, actor] of all as [string, unknown][]) {
    if (name === '' || name === CLOCK) {
      throw new InvalidInputError('actors', name, `another name than '' and '${CLOCK}'`)
    }
    if (typeof actor === 'function') continue
    if (!Array.isArray(actor)) {
      throw new InvalidInputError(`actors.${name}`, actor, 'a list of steps, or a generator function')
    }
    for (const [index, step] of (actor as unknown[]).entries()) {
      const run: unknown = typeof step === 'object' && step !== null && 'run' in step ? step.run : step
      if (typeof run !== 'function') {
        throw new InvalidInputError(`actors.${name}[${index}]`, step, 'a function, or { label, run }')
      }
    }
  }
}

/** Who runs the timers, in a timeline and in an order. */
export const CLOCK = 'clock'
