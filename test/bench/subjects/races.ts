/** Orders of races: what the kit explores by itself, and what the package's own race tests explore with it. */
import fc from 'fast-check'
import { createAgentTasks } from '../../../src/host/agent-tasks.js'
import { exploreRaces } from '../../../src/testing/explore-races.js'
import type { Race, RaceOptions } from '../../../src/testing/race-options.js'
import { delivery } from '../../race/delivery.property.js'
import { lanesProperty } from '../../race/lanes.property.js'
import { createSubject } from '../../support/subject.js'
import type { Subject } from '../subject.js'

interface World {
  readonly told: string[]
  complete(id: string): void
  ask(): Promise<void>
}

const IDS = ['a', 'b']

/** Two tasks end while a person asks, in a host that leases: the kit's own example. */
function createHost(race: Race): World {
  const told: string[] = []
  const read = async (text: string, answer: string): Promise<void> => {
    told.push(...Array.from(text.matchAll(/"agent_id": "(\w+)"/g), ([, id = '']) => id))
    await race.pause(answer)
  }
  const tasks = createAgentTasks({
    clock: race.clock,
    isAgentBusy: () => false,
    triggerAgentTurn: (text) => read(text, 'the wake-up is answered'),
  })
  const manager = tasks.getAsyncTaskManager()
  for (const id of IDS) manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'help' })
  return {
    told,
    complete: (id) => {
      manager.completeTask(id, {})
    },
    ask: async () => {
      const { reminder } = tasks.beforeTurn()
      await read(reminder?.text ?? '', 'the question is answered')
      tasks.afterTurn({ accepted: true })
    },
  }
}

const hostRace: RaceOptions<World> = {
  name: 'a host that leases',
  setup: createHost,
  actors: {
    worker: IDS.map((id) => ({ label: `completes ${id}`, run: (host: World) => host.complete(id) })),
    person: [{ label: 'asks', run: (host: World) => host.ask() }],
  },
  invariants: { 'nothing is told twice': ({ told }) => new Set(told).size === told.length },
  atEnd: { 'everything was told': ({ told }) => told.toSorted().join() === IDS.join() },
}

/** The kit on a host of this package. */
export function kitRaces(): Subject {
  return {
    run: async (times) => {
      await exploreRaces({ ...hostRace, numRuns: times })
      return undefined
    },
  }
}

async function explore(property: fc.IRawProperty<unknown>, times: number): Promise<undefined> {
  const details = await fc.check(property, { numRuns: times })
  if (details.failed) throw new Error('a race was lost', { cause: details.errorInstance })
  return undefined
}

/** Deliveries that race with everything a host can do, up to the disposal. */
export function deliveryRaces(): Subject {
  const property = delivery.create(createSubject())
  return { run: (times) => explore(property, times) }
}

/** Submits, cancels, results and lost instances. */
export function laneRaces(): Subject {
  const property = lanesProperty()
  return { run: (times) => explore(property, times) }
}
