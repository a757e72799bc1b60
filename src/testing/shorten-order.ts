/** Shortens a failing order: removes turns and crashes from its list of names. In a `RaceOrder`, that would change the choices after a removed one. */
import { orderOf } from './race-report.js'
import type { RaceRun } from './race-run.js'
import { CRASH } from './race-life.js'

const MAX_RUNS = 200

/**
 * Removes turns and crashes from the order of a failing run, as long as it fails in the same way.
 * @param run a run that failed
 * @param replay runs the race in another order
 * @returns the shortest run found that fails in the same way
 */
export async function shortenOrder(
  run: RaceRun,
  replay: (order: readonly string[]) => Promise<RaceRun>,
): Promise<RaceRun> {
  let shortest = run
  let runs = 0
  for (let at = orderOf(run).length - 1; at >= 0 && runs < MAX_RUNS; at -= 1, runs += 1) {
    const shorter = await replay(orderOf(shortest).toSpliced(at, 1))
    if (shorter.failure?.kind !== run.failure?.kind || cost(shorter) >= cost(shortest)) continue
    shortest = shorter
    at = orderOf(shortest).length
  }
  return shortest
}

/** A crash costs more than a turn, because it is harder to follow. */
function cost(run: RaceRun): number {
  const order = orderOf(run)
  return order.length * 1000 + order.filter((name) => name.startsWith(CRASH)).length
}
