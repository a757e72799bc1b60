/** A host that tells a result twice, and one that does not. */
import { AsyncTaskReminderService, createAgentTasks } from 'agent-tasks'
import type { Race, RaceOptions } from 'agent-tasks/testing'

function createHost(race: Race) {
  const told: string[] = []
  /** The model reads a text, and takes a while to answer. */
  const read = async (text: string, answer: string): Promise<void> => {
    const ids = Array.from(text.matchAll(/"agent_id": "(\w+)"/g), ([, id = '']) => id)
    told.push(...ids)
    race.note(ids.length === 0 ? 'the model reads nothing new' : `the model reads of ${ids.join(' and ')}`)
    await race.pause(answer)
  }
  return { told, read }
}

interface World {
  readonly told: readonly string[]
  /** A task ends. */
  complete(id: string): void
  /** A person asks something: a turn with whatever the agent has to know. */
  ask(): Promise<void>
}

const race = (name: string, setup: (race: Race) => World): RaceOptions<World> => ({
  name,
  source: { module: './double-delivery.js', name },
  setup,
  actors: {
    worker: [
      { label: 'completes a', run: (host) => host.complete('a') },
      { label: 'completes b', run: (host) => host.complete('b') },
    ],
    person: [{ label: 'asks', run: (host) => host.ask() }],
  },
  invariants: { 'nothing is told twice': ({ told }) => new Set(told).size === told.length },
  atEnd: { 'everything was told': ({ told }) => told.toSorted().join() === 'a,b' },
})

const task = (id: string) => ({ id, subagentName: 'helper', goalPrompt: 'help' })

/** Wrong: each turn reads the reminder when it starts and marks it when it ends, and turns overlap. */
export const hostThatReadsTwice = race('hostThatReadsTwice', (race) => {
  const { told, read } = createHost(race)
  const manager = createAgentTasks({ clock: race.clock }).getAsyncTaskManager()
  const reminders = new AsyncTaskReminderService(manager)
  const turn = async (answer: string): Promise<void> => {
    await read(reminders.generateReminder(), answer)
    reminders.markAllNotified()
  }
  for (const id of ['a', 'b']) manager.registerTask(task(id))
  manager.onTaskCompleted(() => void turn('the wake-up is answered'))
  return { told, complete: (id) => void manager.completeTask(id, {}), ask: () => turn('the question is answered') }
})

/** Right: each message leases what it carries, and its own end decides what becomes of that. */
export const hostWithLeases = race('hostWithLeases', (race) => {
  const { told, read } = createHost(race)
  const tasks = createAgentTasks({
    clock: race.clock,
    isAgentBusy: () => false,
    triggerAgentTurn: (text) => read(text, 'the wake-up is answered'),
  })
  const manager = tasks.getAsyncTaskManager()
  for (const id of ['a', 'b']) manager.registerTask(task(id))
  return {
    told,
    complete: (id) => void manager.completeTask(id, {}),
    ask: async () => {
      const { reminder } = tasks.beforeTurn()
      await read(reminder?.text ?? '', 'the question is answered')
      tasks.afterTurn({ accepted: true })
    },
  }
})
