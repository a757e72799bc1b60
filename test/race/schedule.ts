/**
 * Schedulers that can be named by a number. A scheduler that fast-check generates shares its random numbers with its
 * clones, so that the order in which a shrunk input failed is not the order of its replay; one made afresh for every run
 * is.
 */
import fc from 'fast-check'

/** The number of a schedule. */
export const order: fc.Arbitrary<number> = fc.nat()

/** The scheduler of that number: every call gives a new one that chooses in the same way. */
export function schedulerOf(number: number): fc.Scheduler {
  const [scheduler] = fc.sample(fc.scheduler(), { seed: number, numRuns: 1 })
  if (scheduler === undefined) throw new Error('fast-check made no scheduler')
  return scheduler
}
