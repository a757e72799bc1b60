/** `exploreRaces`: runs a race in random orders, or in every order. */
import { setImmediate as nextEventLoopTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { checkRaceOptions } from './check-race-options.js'
import { Enumeration, NOT_DETERMINISTIC_HINT } from './enumeration.js'
import type { RaceOptions } from './race-options.js'
import { chooserOf, raceOrders } from './race-order.js'
import { orderOf, raceErrorOf } from './race-report.js'
import { runRace, type RaceRun } from './race-run.js'

/** What `exploreRaces` explored without a failure. */
export interface RaceSummary {
  /** How the orders were chosen. */
  readonly mode: 'random' | 'exhaustive'
  /** How many runs were made. */
  readonly runs: number
  /** How many different orders they took; in exhaustive mode all of them. */
  readonly orders: number
  /** The seed of random mode. */
  readonly seed?: number
}

const levels = [fc.VerbosityLevel.None, fc.VerbosityLevel.Verbose, fc.VerbosityLevel.VeryVerbose] as const

/** How many runs may follow each other before the event loop gets a turn. */
const RUNS_PER_TURN = 256

/**
 * Runs your code in many orders. The steps of `actors`, the promises passed to `race.schedule` and the timers of the simulated
 * clock take turns, in orders that fast-check draws or, with `mode: 'exhaustive'`, in every order. No real time passes.
 * @returns how many orders were explored
 * @throws RaceError with the shortest failing order, as a timeline and as a regression test; InvalidInputError for an invalid option;
 *   AgentTasksError `RACE_TOO_LONG` when there are more orders than `maxOrders`, `RACE_NOT_DETERMINISTIC` when runs of one order differ
 * @example
 * await exploreRaces({
 *   setup: () => ({ balance: 1 }),
 *   actors: {
 *     alice: [(account) => withdraw(account)],
 *     bob: [(account) => withdraw(account)],
 *   },
 *   invariants: { 'the account is not overdrawn': (account) => account.balance >= 0 },
 * })
 */
export async function exploreRaces<World, Input = undefined>(options: RaceOptions<World, Input>): Promise<RaceSummary> {
  checkRaceOptions(options)
  return options.mode === 'exhaustive' ? exploreAll(options) : exploreAtRandom(options)
}

async function exploreAtRandom<World, Input>(options: RaceOptions<World, Input>): Promise<RaceSummary> {
  const { numRuns = 1000, seed, path, endOnFailure = false, verbose = false } = options
  const orders = new Set<string>()
  let runs = 0
  const inputs = (options.inputs ?? fc.constant(undefined)) as fc.Arbitrary<Input>
  const property = fc.asyncProperty(raceOrders(), inputs, async (order, input) => {
    const run = await runRace(options, chooserOf(order), input)
    orders.add(orderOf(run).join('\n'))
    if (run.failure !== undefined) throw new Error(run.failure.message)
    // Not after a failure: a step that hangs may spin in microtasks, and the event loop would never come back.
    if (++runs % RUNS_PER_TURN === 0) await nextEventLoopTurn()
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
  const run = await runRace(options, chooserOf(order), input)
  if (run.failure === undefined) {
    throw new AgentTasksError(
      'RACE_NOT_DETERMINISTIC',
      `${options.name ?? 'race'}: failed (${(details.errorInstance as Error).message}) and held in the same order. ` +
        NOT_DETERMINISTIC_HINT,
    )
  }
  const found = { runs: details.numRuns, failed: 1, seed: details.seed, path: details.counterexamplePath }
  const heading = `failed after ${found.runs} run(s), seed ${found.seed}, path ${found.path}; the shortest order found:`
  const others = verbose === false || verbose === 0 ? undefined : await fc.asyncDefaultReportMessage(details)
  throw raceErrorOf({ options, run, input, found, heading, others })
}

async function exploreAll<World, Input>(options: RaceOptions<World, Input>): Promise<RaceSummary> {
  const { maxOrders = 100_000, endOnFailure = false, name = 'race' } = options
  const enumeration = new Enumeration()
  let failed = 0
  let shortest: RaceRun | undefined
  let runs = 0
  do {
    if (runs === maxOrders) {
      if (shortest !== undefined) break
      throw new AgentTasksError(
        'RACE_TOO_LONG',
        `${name}: more than maxOrders = ${maxOrders} orders. Use fewer steps, pauses and timers (time: 'waits' leaves out the orders of ` +
          'timers), raise maxOrders, or explore at random.',
      )
    }
    const run = await runRace(options, enumeration, undefined as Input, endOnFailure ? 'stop' : 'go on')
    runs += 1
    if (run.failure !== undefined) {
      failed += 1
      if (shortest === undefined || cost(run) < cost(shortest)) shortest = run
      if (endOnFailure) break
    } else if (runs % RUNS_PER_TURN === 0 && failed === 0) await nextEventLoopTurn()
  } while (enumeration.next())
  if (shortest === undefined) return { mode: 'exhaustive', runs, orders: runs }
  const heading = `${failed} of ${runs} order(s) failed${endOnFailure ? ', the first of them' : '; the shortest of them'}:`
  throw raceErrorOf({ options, run: shortest, input: undefined, found: { runs, failed }, heading })
}

/** Orders with fewer events cost less; among equals, orders with fewer changes of actor. */
function cost(run: RaceRun): number {
  const order = orderOf(run)
  return order.length * 1000 + order.filter((actor, at) => actor !== order[at - 1]).length
}
