/**
 * Runs fast-check properties. A failure prints its seed and path, and can be replayed.
 *
 * FC_NUM_RUNS  the number of runs of every property; default: the property's own number, or 100, in CI 200
 * FC_SEED      the seed, or `random`; default: a fixed seed, so that a test that fails belongs to the change that it tests
 * FC_PATH      the path of the counterexample among the runs of that seed; use it with `-t` and one property
 * FC_VERBOSE   also prints the seed of a property that holds. CI and FC_NUM_RUNS do this, too
 */
import fc from 'fast-check'

const { env } = process

/** The default number of runs. */
export const runs = positiveInteger('FC_NUM_RUNS') ?? (env['CI'] === undefined ? 100 : 200)

const DEFAULT_SEED = 20_260_101

/** The seed of this run. */
export const seed = seedOfEnvironment()

/** The path in FC_PATH; undefined if all runs of the seed are made. */
export const givenPath = text('FC_PATH')

const speaks = [env['FC_VERBOSE'], env['CI'], env['FC_NUM_RUNS']].some((value) => value !== undefined && value !== '')

/**
 * Parameters for a fast-check run: from the environment, else from the caller, else 100 runs (in CI 200) with the default seed. The number of runs
 * and the seed are always set.
 *
 * @public
 */
export function propertyParameters<T = unknown>(
  overrides: fc.Parameters<T> = {},
): fc.Parameters<T> & { numRuns: number; seed: number } {
  const path = text('FC_PATH') ?? overrides.path
  return {
    ...overrides,
    numRuns: positiveInteger('FC_NUM_RUNS') ?? overrides.numRuns ?? runs,
    seed: text('FC_SEED') === undefined ? (overrides.seed ?? seed) : seedOfEnvironment(),
    ...(path === undefined ? {} : { path }),
  }
}

/**
 * Checks a property, synchronous or not.
 * @throws Error with the seed, the path, the shrunk counterexample, and the command that replays it
 */
export async function checkProperty<T>(
  name: string,
  property: fc.IRawProperty<T>,
  overrides?: fc.Parameters<T>,
): Promise<void> {
  const parameters = propertyParameters(overrides)
  const details = await fc.check(property, parameters)
  if (details.failed) {
    const report = (await fc.asyncDefaultReportMessage(details)) ?? 'Property failed'
    // A property with `fc.commands` needs a second path, which is inside the property. So only the seed is printed, which finds the failure again.
    const path =
      details.counterexamplePath === null || report.includes('replayPath=')
        ? ''
        : ` FC_PATH=${details.counterexamplePath}`
    const replay = `replay: FC_SEED=${details.seed}${path} npm test -- -t '<the test that checks it>'`
    throw new Error(`${name}\n${replay}\n${report}`, { cause: details.errorInstance })
  }
  if (speaks) console.info(`${name}: ${details.numRuns} runs, seed ${details.seed}`)
}

function seedOfEnvironment(): number {
  if (text('FC_SEED') === 'random') return Math.floor(Math.random() * 2 ** 31)
  return integer('FC_SEED') ?? DEFAULT_SEED
}

function text(name: string): string | undefined {
  return env[name] === '' ? undefined : env[name]
}

function integer(name: string): number | undefined {
  const given = text(name)
  if (given === undefined) return undefined
  const value = Number(given)
  if (!Number.isSafeInteger(value)) throw new Error(`${name} must be an integer, not '${given}'`)
  return value
}

function positiveInteger(name: string): number | undefined {
  const value = integer(name)
  if (value !== undefined && value < 1) throw new Error(`${name} must be at least 1, not ${value}`)
  return value
}
