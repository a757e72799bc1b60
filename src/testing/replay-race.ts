/** `replayRace`: runs a race once, in a given order. */
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { checkRaceOptions } from './check-race-options.js'
import type { RaceOptions } from './race-options.js'
import { FixedOrder } from './fixed-order.js'
import { orderOf, raceErrorOf, timelineOf } from './race-report.js'
import { runWatchedRace } from './race-run.js'
import { watchRejections } from './unhandled-rejections.js'

/**
 * A race, and the order to run it in.
 * @typeParam World what `setup` returns. Steps and conditions receive it
 * @typeParam Input the type of `input`. `setup` and `actors` receive it
 * @typeParam Disk what the option `disk` returns: the data that survives a crash
 */
export interface ReplayOptions<World, Input = undefined, Disk = unknown> extends RaceOptions<World, Input, Disk> {
  /**
   * The names that take the turns, in order: an actor, the label of a promise, `clock`, or a crash. A name that cannot take a turn at that point is
   * skipped. A name that can never take a turn is an error. After the last name, the actor of the last turn goes on; after a turn of the clock, another
   * actor.
   */
  readonly order: readonly string[]
  /** The input for `setup` and `actors`, as `inputs` drew it. */
  readonly input?: Input
}

/** What happened in a replay that passed. */
export interface ReplaySummary {
  /** The names that took the turns, in order. */
  readonly order: readonly string[]
  /** The names in the option `order` that took no turn. */
  readonly skipped: readonly string[]
  /** A table with one line for each event: time, actor, step, and notes. */
  readonly timeline: string
}

/**
 * Runs a race once, in a given order. The regression test of a failure calls it.
 * @typeParam World what `setup` returns. Steps and conditions receive it
 * @typeParam Input the type of `options.input`
 * @typeParam Disk what the option `disk` returns: the data that survives a crash
 * @param options the race and the order
 * @returns what happened
 * @throws RaceError when the race fails
 * @throws INVALID_INPUT for an invalid option
 * @throws AgentTasksError `RACE_CHANGED` when the order has a name that the race no longer has
 * @example
 * await replayRace({ ...race, order: ['alice', 'bob', 'alice', 'clock'] })
 */
export async function replayRace<World, Input = undefined, Disk = unknown>(
  options: ReplayOptions<World, Input, Disk>,
): Promise<ReplaySummary> {
  const { order, input } = options
  checkRaceOptions(options)
  if (!Array.isArray(order) || !order.every((name) => typeof name === 'string')) {
    throw new InvalidInputError('options.order', order, 'a list of names')
  }
  const chooser = new FixedOrder(order)
  const watch = watchRejections()
  const run = await runWatchedRace(watch, options, chooser, input as Input).finally(() => watch.stop())
  if (run.failure !== undefined) {
    throw raceErrorOf({ options, run, input, found: { runs: 1, failed: 1 }, heading: 'failed in this order:' })
  }
  const taken = orderOf(run)
  const gone = order.filter((name) => !chooser.offered.has(name))
  if (gone.length > 0) {
    throw new AgentTasksError(
      'RACE_CHANGED',
      `${options.name ?? 'race'}: the order names ${list(gone)}, which the race no longer has, so the replay proves nothing. ` +
        `These names could take a turn: ${list(chooser.offered)}. Explore the race again, and remove this order.`,
    )
  }
  return { order: taken, skipped: missing(order, taken), timeline: timelineOf(run) }
}

const list = (names: Iterable<string>): string => [...new Set(names)].map((name) => `'${name}'`).join(', ')

function missing(order: readonly string[], taken: readonly string[]): string[] {
  const left = [...taken]
  return order.filter((name) => {
    const at = left.indexOf(name)
    if (at !== -1) left.splice(at, 1)
    return at === -1
  })
}
