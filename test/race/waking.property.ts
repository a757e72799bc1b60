/** In any race of a host that crashes, schedules fire once, monitors end once, and dependencies, keys and pauses hold tasks back. */
import fc from 'fast-check'
import { raceOrders, type RaceOptions } from '../../src/testing/index.js'
import { chooserOf } from '../../src/testing/race-order.js'
import { timelineOf } from '../../src/testing/race-report.js'
import { runRace } from '../../src/testing/race-run.js'
import {
  emptyDisk,
  WakingWorld,
  wakingScripts,
  type Disk,
  type WakingSabotage,
  type WakingScript,
  type WakingStep,
} from './waking-world.js'

/** The race of any script. */
export function wakingRace(sabotage: WakingSabotage = {}): RaceOptions<WakingWorld, WakingScript, Disk> {
  const worlds: WakingWorld[] = []
  const actor = (steps: readonly WakingStep[]) =>
    steps.map((step) => ({ label: step.do, run: (world: WakingWorld) => world.take(step) }))
  const look = ({ problem }: WakingWorld): void => {
    if (problem !== undefined) throw new Error(problem)
  }
  return {
    name: 'waking',
    crashes: true,
    disk: emptyDisk,
    inputs: wakingScripts,
    setup: (race, script) => {
      const world = new WakingWorld(race, script, sabotage)
      worlds.push(world)
      return world
    },
    actors: (_, { worker, user }) => ({
      worker: actor(worker),
      user: actor(user),
    }),
    invariants: { 'nothing contradicts itself': look },
    atEnd: {
      'nothing is lost': (world) => {
        world.conclude()
        look(world)
      },
    },
    // The runs of a life that has crashed never end.
    teardown: async (world) => {
      for (const { tasks } of worlds.splice(0)) if (tasks !== world.tasks) void tasks.dispose()
      await world.tasks.dispose()
    },
  }
}

/** The same as a property, for `checkProperty` and `npm run faults`. */
export const wakingProperty = (sabotage?: WakingSabotage): fc.IRawProperty<unknown> => {
  const race = wakingRace(sabotage)
  return fc.asyncProperty(raceOrders(), wakingScripts, async (order, script) => {
    const run = await runRace(race, chooserOf(order), script)
    if (run.failure !== undefined) throw new Error(`${run.failure.message}\n${timelineOf(run)}`)
  })
}
