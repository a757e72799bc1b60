/** Runs a race in many orders, at random or all of them, or in one order that is known. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { Enumeration } from './enumeration.js'
import { RaceError, type RaceFindings } from './race-error.js'
import { checkRaceOptions, type RaceOptions } from './race-options.js'
import { raceOrders, type Chooser } from './race-order.js'
import { orderOf, regressionTestOf, timelineOf } from './race-report.js'
import { runRace, type RaceRun } from './race-run.js'

/** What was explored, when every run held. */
export interface RaceSummary {
  /** How the orders were chosen. */
  readonly mode: 'random' | 'exhaustive'
  /** How many runs there were. */
  readonly runs: number
  /** How many different orders they took; in exhaustive mode these are all there are. */
  readonly orders: number
  /** The seed of random runs. */
  readonly seed?: number
}

/** The race of `replayRace`. */
export interface ReplayOptions<World, Input = undefined> extends RaceOptions<World, Input> {
  /**
   * Who goes next, event by event: names of actors, labels of promises, and `clock`. One that cannot go is passed over; when
   * the list has ended, whoever went last goes on.
   */
  readonly order: readonly string[]
  /** What `setup` and `actors` get. */
  readonly input?: Input
}

/** What happened in a replay that held. */
export interface ReplaySummary {
  /** Who went, event by event. */
  readonly order: readonly string[]
  /** The names that could not go when it was their turn, or never did. */
  readonly skipped: readonly string[]
  /** What happened, one line for each event. */
  readonly timeline: string
}

const levels = [fc.VerbosityLevel.None, fc.VerbosityLevel.Verbose, fc.VerbosityLevel.VeryVerbose] as const

/** How many runs may follow each other before the event loop has a turn. */
const RUNS_PER_TURN = 256

/**
 * Runs your own integration in many orders: the steps of `actors`, the promises that your code hands to the race, and the timers of
 * the simulated clock take turns in every order that fast-check draws, or, with `mode: 'exhaustive'`, in every order there is.
 * No real time passes.
 * @returns how many orders were explored
 * @throws RaceError with the shortest order found, as a timeline and as a regression test; InvalidInputError for options that do not
 *   fit; AgentTasksError `RACE_TOO_LONG` when there are more orders than `maxOrders`, `RACE_NOT_DETERMINISTIC` when an order does
 *   something else each time
 * @example
 * await exploreRaces({
 *   setup: () => ({ balance: 1 }),
 *   actors: {
 *     alice: [(account) => withdraw(account)],
 *     bob: [(account) => withdraw(account)],
 *   },
 *   invariants: { 'nobody overdraws': (account) => account.balance >= 0 },
 * })
 */
export async function exploreRaces<World, Input = undefined>(options: RaceOptions<World, Input>): Promise<RaceSummary> {
  checkRaceOptions(options)
  return options.mode === 'exhaustive' ? exploreAll(options) : exploreAtRandom(options)
}

/**
 * Runs a race once, in a given order: what the regression test of a failure does.
 * @returns what happened
 * @throws RaceError when it is lost again; InvalidInputError for options that do not fit
 * @example
 * await replayRace({ ...race, order: ['alice', 'bob', 'alice', 'clock'] })
 */
export async function replayRace<World, Input = undefined>(
  options: ReplayOptions<World, Input>,
): Promise<ReplaySummary> {
  const { order } = options
  checkRaceOptions(options)
  if (!Array.isArray(order) || !order.every((name) => typeof name === 'string')) {
    throw new InvalidInputError('options.order', order, 'a list of names')
  }
  const chooser = new FixedOrder(order)
  const run = await runRace(options, chooser, options.input as Input)
  if (run.failure !== undefined) {
    throw lost(options, run, options.input, { runs: 1, failed: 1 }, 'failed in this order:')
  }
  const taken = orderOf(run)
  return { order: taken, skipped: missing(order, taken), timeline: timelineOf(run) }
}

async function exploreAtRandom<World, Input>(options: RaceOptions<World, Input>): Promise<RaceSummary> {
  const { numRuns = 1000, seed, path, endOnFailure = false, verbose = false } = options
  const orders = new Set<string>()
  let runs = 0
  const explore = async (chooser: Chooser, input: Input): Promise<RaceRun> => {
    const run = await runRace(options, chooser, input)
    orders.add(orderOf(run).join('\n'))
    // A run that hangs may have left a loop behind that would never let the event loop go on.
    if (run.failure === undefined && ++runs % RUNS_PER_TURN === 0) await nextTurn()
    return run
  }
  const inputs = (options.inputs ?? fc.constant(undefined)) as fc.Arbitrary<Input>
  const property = fc.asyncProperty(raceOrders(), inputs, async (order, input) => {
    const { failure } = await explore(order.chooser(), input)
    if (failure !== undefined) throw new Error(failure.message)
  })
  const details = await fc.check(property, {
    numRuns,
    endOnFailure,
    verbose: typeof verbose === 'boolean' ? verbose : levels[verbose],
    ...(seed !== undefined && { seed }),
    ...(path !== undefined && { path }),
  })
  if (!details.failed) return { mode: 'random', runs: details.numRuns, orders: orders.size, seed: details.seed }
  if (details.errorInstance instanceof InvalidInputError) throw details.errorInstance
  if (details.counterexample === null) {
    throw new AgentTasksError('RACE_NOT_RUN', `no run was made: ${(await fc.asyncDefaultReportMessage(details)) ?? ''}`)
  }
  const [order, input] = details.counterexample
  const run = await runRace(options, order.chooser(), input)
  if (run.failure === undefined) {
    throw new AgentTasksError(
      'RACE_NOT_DETERMINISTIC',
      `${options.name ?? 'race'}: failed (${(details.errorInstance as Error).message}) and held in the same order. ` +
        'What decides besides the race? Real time, Math.random, I/O, or what an earlier run left behind.',
    )
  }
  const found = { runs: details.numRuns, failed: 1, seed: details.seed, path: details.counterexamplePath }
  const what = `failed after ${found.runs} run(s), seed ${found.seed}, path ${found.path}; the shortest order found:`
  const others = verbose === false || verbose === 0 ? undefined : await fc.asyncDefaultReportMessage(details)
  throw lost(options, run, input, found, what, others)
}

async function exploreAll<World, Input>(options: RaceOptions<World, Input>): Promise<RaceSummary> {
  const { maxOrders = 100_000, endOnFailure = false, name = 'race' } = options
  const enumeration = new Enumeration()
  let failed = 0
  let shortest: RaceRun | undefined
  let runs = 0
  do {
    if (runs === maxOrders && shortest === undefined) {
      throw new AgentTasksError(
        'RACE_TOO_LONG',
        `${name}: more than maxOrders = ${maxOrders} orders. Take fewer steps, pauses and timers (time: 'waits' lets no timer race), ` +
          'raise maxOrders, or explore at random.',
      )
    }
    if (runs === maxOrders) break
    const run = await runRace(options, enumeration, undefined as Input, endOnFailure ? 'stop' : 'go on')
    runs += 1
    if (run.failure !== undefined) {
      failed += 1
      if (shortest === undefined || cost(run) < cost(shortest)) shortest = run
      if (endOnFailure) break
    } else if (runs % RUNS_PER_TURN === 0 && failed === 0) await nextTurn()
  } while (enumeration.next())
  if (shortest === undefined) return { mode: 'exhaustive', runs, orders: runs }
  const what = `${failed} of ${runs} order(s) failed${endOnFailure ? ', the first of them' : '; the shortest of them'}:`
  throw lost(options, shortest, undefined, { runs, failed }, what)
}

/** Fewest events first, then fewest times that somebody else goes on. */
function cost(run: RaceRun): number {
  const order = orderOf(run)
  return order.length * 1000 + order.filter((actor, at) => actor !== order[at - 1]).length
}

function lost<World, Input>(
  options: RaceOptions<World, Input>,
  run: RaceRun,
  input: Input | undefined,
  found: Pick<RaceFindings, 'runs' | 'failed' | 'seed' | 'path'>,
  what: string,
  others?: string,
): RaceError {
  const { seed, path } = found
  const order = orderOf(run)
  const timeline = timelineOf(run)
  const replay = seed === undefined || path === undefined ? undefined : { seed, path }
  const regressionTest = regressionTestOf(options, order, input, replay)
  const message = [
    `${options.name ?? 'race'}: ${run.failure?.message ?? ''}`,
    what,
    '',
    timeline,
    '',
    'This test fails in the same way:',
    '',
    regressionTest,
    ...(others === undefined ? [] : ['', others]),
  ]
  return new RaceError(message.join('\n'), { ...found, order, timeline, regressionTest, run })
}

/** Follows a list of names as far as it goes. */
class FixedOrder implements Chooser {
  readonly #left: string[]

  constructor(order: readonly string[]) {
    this.#left = [...order]
  }

  follow(name: string): void {
    if (this.#left[0] === name) this.#left.shift()
  }

  choose(names: readonly string[]): number {
    const at = this.#left.findIndex((name) => names.includes(name))
    if (at === -1) return 0
    const name = this.#left[at] ?? ''
    this.#left.splice(0, at + 1)
    return names.indexOf(name)
  }
}

function missing(order: readonly string[], taken: readonly string[]): string[] {
  const left = [...taken]
  return order.filter((name) => {
    const at = left.indexOf(name)
    if (at !== -1) left.splice(at, 1)
    return at === -1
  })
}
