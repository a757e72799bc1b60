/** Orders of a race that the kit explores: two tasks end in a host that leases while a person asks. */
import type { Race, RaceOptions } from 'agent-tasks/testing'
import { importEntry } from '../package.js'
import type { Subject } from '../subject.js'

interface World {
  readonly delivered: string[]
  complete(id: string): void
  ask(): Promise<void>
}

const IDS = ['a', 'b']

export async function hostRaces(_params: unknown, checkout: string): Promise<Subject> {
  const { createAgentTasks } = await importEntry(checkout, '.')
  const { exploreRaces } = await importEntry(checkout, './testing')

  const setup = (race: Race): World => {
    const delivered: string[] = []
    const read = async (text: string, answer: string): Promise<void> => {
      delivered.push(...Array.from(text.matchAll(/"agent_id": "(\w+)"/g), ([, id = '']) => id))
      await race.pause(answer)
    }
    const tasks = createAgentTasks({
      clock: race.clock,
      isAgentBusy: () => false,
      triggerAgentTurn: (text) => read(text, 'the wake-up is answered'),
      // A turn that takes half an hour loses its lease.
      turnTimeoutMs: Infinity,
    })
    const manager = tasks.getAsyncTaskManager()
    for (const id of IDS) manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'help' })
    return {
      delivered,
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
  const race: RaceOptions<World> = {
    name: 'a host that leases',
    setup,
    actors: {
      worker: IDS.map((id) => ({ label: `completes ${id}`, run: (host: World) => host.complete(id) })),
      person: [{ label: 'asks', run: (host: World) => host.ask() }],
    },
    invariants: { 'nothing is delivered twice': ({ delivered }) => new Set(delivered).size === delivered.length },
    atEnd: { 'everything was delivered': ({ delivered }) => delivered.toSorted().join() === IDS.join() },
  }
  return {
    run: async (times) => {
      await exploreRaces({ ...race, numRuns: times })
      return undefined
    },
  }
}
