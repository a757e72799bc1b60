/** A race that was lost: what was wrong, the order in which it happened, and the test that shows it again. */
import { AgentTasksError } from '../errors.js'
import type { RaceRun } from './race-run.js'

/** What is known about a failure besides its message. */
export interface RaceFindings {
  /** The name of whoever went next, event by event: the option `order` of `replayRace`. */
  readonly order: readonly string[]
  /** What happened, one line for each event: time, actor, step, and what was noted. */
  readonly timeline: string
  /** The text of a test file that runs this order again. */
  readonly regressionTest: string
  /** How many runs it took to find, before any shrinking; every order there is in exhaustive mode. */
  readonly runs: number
  /** How many of them failed; in random mode those up to the first, which is 1. */
  readonly failed: number
  /** The seed and path of a random run: `exploreRaces` with both fails in the same way. */
  readonly seed?: number
  /** Where in the seed's run it was found. */
  readonly path?: string
  /** The run of the shortest order found. */
  readonly run: RaceRun
}

/**
 * A race failed. Its message holds everything: what was wrong, the timeline, and the regression test.
 * @example
 * const error = await exploreRaces(race).catch((error: unknown) => error)
 * if (error instanceof RaceError) console.log(error.order, error.seed, error.path)
 */
export class RaceError extends AgentTasksError implements RaceFindings {
  override readonly name = 'RaceError'
  readonly order: readonly string[]
  readonly timeline: string
  readonly regressionTest: string
  readonly runs: number
  readonly failed: number
  readonly seed?: number
  /** Where in the seed's run it was found. */
  readonly path?: string
  /** The run of the shortest order found. */
  readonly run: RaceRun

  constructor(message: string, findings: RaceFindings) {
    const cause = findings.run.failure?.cause
    super('RACE_LOST', message, cause === undefined ? undefined : { cause })
    this.order = findings.order
    this.timeline = findings.timeline
    this.regressionTest = findings.regressionTest
    this.runs = findings.runs
    this.failed = findings.failed
    this.run = findings.run
    if (findings.seed !== undefined) this.seed = findings.seed
    if (findings.path !== undefined) this.path = findings.path
  }
}
