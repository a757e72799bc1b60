/**
 * In any race of a host that crashes or ends politely (K13), all lives together keep A1 to A9 and K1 to K7, also while writes fail (K10). What follows a
 * polite end is judged as what follows a crash.
 */
import fc from 'fast-check'
import { raceOrders, type RaceOptions } from '../../src/testing/index.js'
import { timelineOf } from '../../src/testing/race-report.js'
import { chooserOf } from '../../src/testing/race-order.js'
import { runRace } from '../../src/testing/race-run.js'
import { crashScripts, type CrashScript, type CrashStep } from './crash-script.js'
import { CrashWorld, emptyDisk, type CrashSabotage, type Disk } from './crash-world.js'

/** The race of any script. */
export function crashRace(
  sabotage: CrashSabotage = {},
  scripts: fc.Arbitrary<CrashScript> = crashScripts,
): RaceOptions<CrashWorld, CrashScript, Disk> {
  const worlds: CrashWorld[] = []
  const actor = (steps: readonly CrashStep[]) =>
    steps.map((step) => ({ label: labelOf(step), run: (world: CrashWorld) => world.take(step) }))
  return {
    name: 'crashes',
    crashes: true,
    disk: emptyDisk,
    inputs: scripts,
    setup: (race, script) => {
      const world = new CrashWorld(race, script, sabotage)
      worlds.push(world)
      return world
    },
    actors: (_, { worker, user, stops }) => ({
      worker: actor(worker),
      user: actor(user),
      ...(stops > 0 && { host: actor(Array.from({ length: stops }, () => ({ do: 'restart' }) as const)) }),
    }),
    invariants: {
      'nothing contradicts itself': (world) => {
        world.look()
        if (world.problem !== undefined) throw new Error(world.problem)
      },
    },
    atEnd: {
      'nothing is lost': (world) => {
        world.conclude()
        if (world.problem !== undefined) throw new Error(world.problem)
      },
    },
    // The runs of a life that has crashed never end.
    teardown: async (world) => {
      for (const dead of worlds.splice(0)) {
        dead.end()
        void dead.tasks.dispose()
      }
      await world.tasks.dispose()
      world.checkDisposal()
    },
  }
}

/** The same as a property, for `checkProperty` and `npm run faults`. */
export const crashesProperty = (sabotage?: CrashSabotage, scripts = crashScripts): fc.IRawProperty<unknown> => {
  const race = crashRace(sabotage, scripts)
  return fc.asyncProperty(raceOrders(), scripts, async (order, script) => {
    const run = await runRace(race, chooserOf(order), script)
    if (run.failure !== undefined) throw new Error(`${run.failure.message}\n${timelineOf(run)}`)
  })
}

const labelOf = (step: CrashStep): string => ('nth' in step ? `${step.do} number ${step.nth}` : step.do)
