/** `exploreRaces`: runs a race in random orders, or in every order. */
import fc from 'fast-check'
import { omitUndefined } from '../data/omit-undefined.js'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { checkRaceOptions } from './check-race-options.js'
import { FixedOrder } from './fixed-order.js'
import { NOT_DETERMINISTIC_HINT, OrderTree, RecordedChooser, type Choice } from './order-tree.js'
import type { RaceOptions } from './race-options.js'
import { chooserOf, raceOrders, type Chooser } from './race-order.js'
import type { RaceError } from './race-error.js'
import { orderOf, raceErrorOf } from './race-report.js'
import { shortenOrder } from './shorten-order.js'
import { runRace, runWatchedRace, type AfterFailure, type RaceRun } from './race-run.js'
import { watchRejections, type RejectionWatch } from './unhandled-rejections.js'

/** What `exploreRaces` explored without a failure. */
export interface RaceSummary {
  /** How the orders were chosen. */
  readonly mode: 'random' | 'exhaustive'
  /** The number of runs. */
  readonly runs: number
  /**
   * The number of different orders among the runs. It counts all orders of the race in exhaustive mode, and in random mode if there are no more than
   * `numRuns` orders and no `inputs`.
   */
  readonly orders: number
  /** The seed of random mode. Pass it as the option `seed` to draw the same orders again. */
  readonly seed?: number
}

const levels = [fc.VerbosityLevel.None, fc.VerbosityLevel.Verbose, fc.VerbosityLevel.VeryVerbose] as const

/** How many runs are made before the event loop gets a turn, in which unhandled rejections are reported. */
const RUNS_PER_TURN = 256

/** The maximum number of orders that are kept as a tree, so that no order is run twice. A larger tree would fill the memory. */
const MOST_FEW_ORDERS = 10_000

/**
 * Runs your code in many orders, to find an order in which it fails. Three things take turns: the steps of `actors`, the promises that are passed to
 * `race.schedule`, and the timers of the simulated clock. No real time passes.
 *
 * In random mode, fast-check draws the orders. An order that was drawn before is not run again. If the race has no `inputs` and no more than `numRuns`
 * orders, all of them are run. With `mode: 'exhaustive'`, every order is run.
 * @typeParam World what `setup` returns. Steps and conditions receive it
 * @typeParam Input what `inputs` draws for each run
 * @typeParam Disk what the option `disk` returns: the data that survives a crash
 * @param options the race and how to explore it
 * @returns how many runs and orders were explored without a failure
 * @throws RaceError for a failure, with the shortest failing order that was found, as a timeline and as a regression test
 * @throws INVALID_INPUT for an invalid option
 * @throws AgentTasksError `RACE_TOO_LONG` when exhaustive mode finds more than `maxOrders` orders
 * @throws AgentTasksError `RACE_NOT_DETERMINISTIC` when two runs of the same order differ
 * @throws AgentTasksError `RACE_NOT_RUN` when fast-check made no run
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
export async function exploreRaces<World, Input = undefined, Disk = unknown>(
  options: RaceOptions<World, Input, Disk>,
): Promise<RaceSummary> {
  checkRaceOptions(options)
  // The seed is chosen here, so that the second exploration below draws the same orders.
  const { seed = Math.floor(Math.random() * 2 ** 31) } = options
  const watch = watchRejections()
  const explore = (runs: Runs): Promise<RaceSummary> =>
    options.mode === 'exhaustive' ? exploreAll(options, runs) : exploreAtRandom({ ...options, seed }, runs)
  try {
    return await explore(new Runs(watch, RUNS_PER_TURN))
  } catch (error) {
    if (error !== REJECTED) throw error
    // One of the last runs left an unhandled rejection. A second exploration looks after each run, to find out which one.
    return await explore(new Runs(watch, 1))
  } finally {
    watch.stop()
  }
}

/** Thrown when a recent run left an unhandled rejection. */
const REJECTED = new Error('a promise was rejected and nothing handled it')

/** Makes the runs of an exploration. Regularly gives the event loop a turn, in which unhandled rejections are reported. */
class Runs {
  readonly #watch: RejectionWatch
  readonly #perTurn: number
  #made = 0
  #hasFailed = false

  constructor(watch: RejectionWatch, perTurn: number) {
    this.#watch = watch
    this.#perTurn = perTurn
  }

  async run<World, Input, Disk>(
    options: RaceOptions<World, Input, Disk>,
    chooser: Chooser,
    input: Input,
    afterFailure?: AfterFailure,
  ): Promise<RaceRun> {
    if (this.#perTurn === 1) return runWatchedRace(this.#watch, options, chooser, input, afterFailure)
    const run = await runRace(options, chooser, input, afterFailure)
    this.#made += 1
    this.#hasFailed ||= run.failure !== undefined
    // After a failure the event loop gets no turn, because a step that hangs may keep microtasks running without end.
    if (!this.#hasFailed && this.#made % this.#perTurn === 0) await this.look()
    return run
  }

  /** @throws REJECTED if a run since the last check left an unhandled rejection */
  async look(): Promise<void> {
    if ((await this.#watch.first()) !== undefined) throw REJECTED
  }
}

async function exploreAtRandom<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  runs: Runs,
): Promise<RaceSummary> {
  const { numRuns = 1000, seed, path, endOnFailure = false, verbose = false } = options
  const orders = new Set<string>()
  // The tree skips orders that were run before. With `inputs` there is no tree, because runs of the same order may have different inputs.
  let tree = options.inputs === undefined && path === undefined ? new OrderTree() : undefined
  let made = 0
  let madeUntilFailure: number | undefined
  const inputs = (options.inputs ?? fc.constant(undefined)) as fc.Arbitrary<Input>
  const property = fc.asyncProperty(raceOrders(), inputs, async (order, input) => {
    if (tree?.has(chooserOf(order)) === true) return
    const chooser = new RecordedChooser(chooserOf(order))
    const run = await runs.run(options, chooser, input)
    made += 1
    orders.add(orderOf(run).join('\n'))
    if (run.failure !== undefined) {
      madeUntilFailure ??= made
      throw new Error(run.failure.message)
    }
    tree = withOrder(tree, chooser.choices)
  })
  const details = await fc.check(property, {
    numRuns,
    endOnFailure,
    verbose: typeof verbose === 'boolean' ? verbose : levels[verbose],
    ...omitUndefined({ seed, path }),
  })
  if (details.errorInstance === REJECTED) throw REJECTED
  if (!details.failed) {
    await runs.look()
    const left = tree === undefined ? 0 : await exploreLeft(options, runs, tree, numRuns)
    return { mode: 'random', runs: made + left, orders: orders.size + left, seed: details.seed }
  }
  if (details.errorInstance instanceof InvalidInputError) throw details.errorInstance
  if (details.counterexample === null) {
    throw new AgentTasksError(
      'RACE_NOT_RUN',
      `fast-check made no run: ${(await fc.asyncDefaultReportMessage(details)) ?? ''}`,
    )
  }
  const [order, input] = details.counterexample
  const drawn = await runs.run(options, chooserOf(order), input)
  if (drawn.failure === undefined) {
    throw new AgentTasksError(
      'RACE_NOT_DETERMINISTIC',
      `${options.name ?? 'race'}: failed (${(details.errorInstance as Error).message}), and then passed in the same order. ` +
        NOT_DETERMINISTIC_HINT,
    )
  }
  const isFirst = endOnFailure && path === undefined
  const run = isFirst ? drawn : await shortenOrder(drawn, (names) => runs.run(options, new FixedOrder(names), input))
  const found = { runs: madeUntilFailure ?? made, failed: 1, seed: details.seed, path: details.counterexamplePath }
  const heading = `failed after ${found.runs} run(s), seed ${found.seed}, path ${found.path}; the shortest order found:`
  const others = verbose === false || verbose === 0 ? undefined : await fc.asyncDefaultReportMessage(details)
  throw raceErrorOf({ options, run, input, found, heading, others })
}

/**
 * Adds an order to a tree.
 * @returns the tree; undefined if it can no longer show which orders are left
 */
function withOrder(tree: OrderTree | undefined, choices: readonly Choice[]): OrderTree | undefined {
  try {
    tree?.add(choices)
  } catch {
    // Something besides the order decides what happens, so no order may be skipped.
    return undefined
  }
  return tree?.size === MOST_FEW_ORDERS ? undefined : tree
}

/**
 * Runs the orders that were not drawn.
 * @returns how many orders that were
 */
async function exploreLeft<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  all: Runs,
  tree: OrderTree,
  numRuns: number,
): Promise<number> {
  const drawn = tree.size
  const { failed, runs, shortest } = await runOrders(options, all, tree, numRuns)
  if (shortest !== undefined) throw errorOfOrders(options, shortest, drawn + runs, failed)
  await all.look()
  return runs
}

async function exploreAll<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  all: Runs,
): Promise<RaceSummary> {
  const { maxOrders = 100_000, name = 'race' } = options
  const tree = new OrderTree()
  const { runs, failed, shortest } = await runOrders(options, all, tree, maxOrders)
  if (shortest !== undefined) throw errorOfOrders(options, shortest, runs, failed)
  if (!tree.isComplete) {
    throw new AgentTasksError(
      'RACE_TOO_LONG',
      `${name}: the race has more than maxOrders = ${maxOrders} orders. Use fewer steps, pauses and timers, raise maxOrders, or ` +
        'use random mode.',
    )
  }
  await all.look()
  return { mode: 'exhaustive', runs, orders: runs }
}

/** Runs the orders that are missing in a tree, until the tree has `maxOrders` orders. */
async function runOrders<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  all: Runs,
  tree: OrderTree,
  maxOrders: number,
) {
  const { endOnFailure = false } = options
  let failed = 0
  let runs = 0
  let shortest: RaceRun | undefined
  while (!tree.isComplete && tree.size < maxOrders && !(endOnFailure && failed > 0)) {
    const chooser = new RecordedChooser(tree.next())
    const run = await all.run(options, chooser, undefined as Input, endOnFailure ? 'stop' : 'go on')
    // A run that stops at a failure makes only the first choices of its order, so the tree cannot take it.
    if (run.failure === undefined || !endOnFailure) tree.add(chooser.choices)
    runs += 1
    if (run.failure === undefined) continue
    failed += 1
    if (shortest === undefined || cost(run) < cost(shortest)) shortest = run
  }
  return { failed, runs, shortest }
}

function errorOfOrders<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  shortest: RaceRun,
  runs: number,
  failed: number,
): RaceError {
  const heading = `${failed} of ${runs} order(s) failed${options.endOnFailure === true ? ', the first of them' : '; the shortest of them'}:`
  return raceErrorOf({ options, run: shortest, input: undefined, found: { runs, failed }, heading })
}

/** A run with fewer events costs less. Of two runs with equally many events, the run that changes the actor less often costs less. */
function cost(run: RaceRun): number {
  const order = orderOf(run)
  return order.length * 1000 + order.filter((actor, at) => actor !== order[at - 1]).length
}
