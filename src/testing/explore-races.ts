/** `exploreRaces`: runs a race in random orders, or in every order. */
import fc from 'fast-check'
import { defined } from '../defined.js'
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
  /** The number of different orders: all of them in exhaustive mode, and in random mode if there are no more than `numRuns`. */
  readonly orders: number
  /** The seed of random mode. */
  readonly seed?: number
}

const levels = [fc.VerbosityLevel.None, fc.VerbosityLevel.Verbose, fc.VerbosityLevel.VeryVerbose] as const

/** How many runs are made before the event loop gets a turn. */
const RUNS_PER_TURN = 256

/** The maximum for which all orders are kept as a tree. A larger tree would fill the memory. */
const MOST_FEW_ORDERS = 10_000

/**
 * Runs your code in many orders. The steps of `actors`, the promises passed to `race.schedule` and the timers of the simulated
 * clock take turns, in orders that fast-check draws or, with `mode: 'exhaustive'`, in every order. An order that was drawn before is not
 * run again: a race with no more than `numRuns` orders, and without `inputs`, runs each of them. No real time passes.
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
export async function exploreRaces<World, Input = undefined, Disk = unknown>(
  options: RaceOptions<World, Input, Disk>,
): Promise<RaceSummary> {
  checkRaceOptions(options)
  // Chosen here, so that a second exploration is the same.
  const { seed = Math.floor(Math.random() * 2 ** 31) } = options
  const watch = watchRejections()
  const explore = (runs: Runs): Promise<RaceSummary> =>
    options.mode === 'exhaustive' ? exploreAll(options, runs) : exploreAtRandom({ ...options, seed }, runs)
  try {
    return await explore(new Runs(watch, RUNS_PER_TURN))
  } catch (error) {
    if (error !== REJECTED) throw error
    // One of several runs left an unhandled rejection, so check after each run.
    return await explore(new Runs(watch, 1))
  } finally {
    watch.stop()
  }
}

/** Thrown when a recent run left an unhandled rejection. */
const REJECTED = new Error('a promise was rejected and nothing handled it')

/** Makes the runs of an exploration, and regularly gives the event loop a turn. */
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
    // Not after a failure, because a hanging step may spin in microtasks and block the event loop.
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
  // With inputs, equal orders may be different runs.
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
    ...defined({ seed, path }),
  })
  if (details.errorInstance === REJECTED) throw REJECTED
  if (!details.failed) {
    await runs.look()
    const left = tree === undefined ? 0 : await exploreLeft(options, runs, tree, numRuns)
    return { mode: 'random', runs: made + left, orders: orders.size + left, seed: details.seed }
  }
  if (details.errorInstance instanceof InvalidInputError) throw details.errorInstance
  if (details.counterexample === null) {
    throw new AgentTasksError('RACE_NOT_RUN', `no run was made: ${(await fc.asyncDefaultReportMessage(details)) ?? ''}`)
  }
  const [order, input] = details.counterexample
  const drawn = await runs.run(options, chooserOf(order), input)
  if (drawn.failure === undefined) {
    throw new AgentTasksError(
      'RACE_NOT_DETERMINISTIC',
      `${options.name ?? 'race'}: failed (${(details.errorInstance as Error).message}) and held in the same order. ` +
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
 * @returns undefined if the tree cannot determine which orders are left
 */
function withOrder(tree: OrderTree | undefined, choices: readonly Choice[]): OrderTree | undefined {
  try {
    tree?.add(choices)
  } catch {
    // More than the order decides what can happen, so every draw is run.
    return undefined
  }
  return tree?.size === MOST_FEW_ORDERS ? undefined : tree
}

/**
 * Runs the orders that were not drawn.
 * @returns how many there were
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
      `${name}: more than maxOrders = ${maxOrders} orders. Use fewer steps, pauses and timers, raise maxOrders, or ` +
        'explore at random.',
    )
  }
  await all.look()
  return { mode: 'exhaustive', runs, orders: runs }
}

/** Runs the orders that are missing in a tree, until it has `maxOrders`. */
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
    // A run that stopped at a failure has made fewer choices than the full order.
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

/** Fewer events cost less. With equal numbers, fewer changes of actor cost less. */
function cost(run: RaceRun): number {
  const order = orderOf(run)
  return order.length * 1000 + order.filter((actor, at) => actor !== order[at - 1]).length
}
