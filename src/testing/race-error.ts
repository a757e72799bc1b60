/** The error of a failed race. */
import { AgentTasksError } from '../errors.js'
import type { RaceRun } from './race-run.js'

/** The contents of a `RaceError` besides its message. */
export type RaceFindings = Pick<
  RaceError,
  'order' | 'input' | 'timeline' | 'regressionTest' | 'runs' | 'failed' | 'seed' | 'path' | 'run'
>

/**
 * The error of a failed race (code `RACE_LOST`). Its message has the failure, a regression test and, at the end, the timeline.
 *
 * The error has no stack and no `cause`, and its fields are not enumerable. Otherwise test runners would print them after the timeline. The thrown error
 * is in `run.failure.cause`.
 * @example
 * const error = await exploreRaces(race).catch((error: unknown) => error)
 * if (error instanceof RaceError) console.log(error.order, error.seed, error.path)
 */
export class RaceError extends AgentTasksError {
  override readonly name = 'RaceError'
  /** The names that took the turns, and the names of the crashes, in order. Pass it as the option `order` to `replayRace`. */
  readonly order: readonly string[]
  /** The input of the run; undefined without the option `inputs`. */
  readonly input: unknown
  /** A table with one line for each event: time, actor, step, and notes. */
  readonly timeline: string
  /** The text of a test file that runs this order again. */
  readonly regressionTest: string
  /** How many runs were made: in random mode up to the first failure, in exhaustive mode all. */
  readonly runs: number
  /** How many of the runs failed; 1 in random mode. */
  readonly failed: number
  /** The seed of a random run. Pass it to `exploreRaces` together with `path` to get the same failure. */
  readonly seed?: number
  /** The path of a random run, which finds it among the runs of its seed. */
  readonly path?: string
  /** The run of the shortest order found. */
  readonly run: RaceRun

  constructor(message: string, findings: RaceFindings) {
    const { order, input, timeline, regressionTest, runs, failed, seed, path, run } = findings
    super('RACE_LOST', message)
    this.order = order
    this.input = input
    this.timeline = timeline
    this.regressionTest = regressionTest
    this.runs = runs
    this.failed = failed
    this.run = run
    if (seed !== undefined) this.seed = seed
    if (path !== undefined) this.path = path
    this.stack = `${this.name}: ${message}`
    for (const field of Object.keys(this)) Object.defineProperty(this, field, { enumerable: false })
  }
}
