/** A host that delivers a result twice, and one that does not. */
import { AsyncTaskReminderService, createAgentTasks } from 'agent-tasks'
import type { Race, RaceOptions } from 'agent-tasks/testing'

function createHost(race: Race) {
  const received: string[] = []
  /** The model reads a text, and takes a while to answer. */
  const read = async (text: string, answer: string): Promise<void> => {
    const ids = Array.from(text.matchAll(/"agent_id": "(\w+)"/g), ([, id = '']) => id)
    received.push(...ids)
    race.note(ids.length === 0 ? 'the model reads nothing new' : `the model reads the results of ${ids.join(' and ')}`)
    await race.pause(answer)
  }
  return { received, read }
}

interface World {
  readonly received: readonly string[]
  /** Completes a task. */
  complete(id: string): void
  /** A user asks a question, which starts a turn with a reminder. */
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
    user: [{ label: 'asks', run: (host) => host.ask() }],
  },
  invariants: { 'no result arrives twice': ({ received }) => new Set(received).size === received.length },
  atEnd: { 'every result has arrived': ({ received }) => received.toSorted().join() === 'a,b' },
})

const task = (id: string) => ({ id, subagentName: 'helper', goalPrompt: 'help' })

/** Wrong: each turn reads the reminder when it starts and marks it when it ends, and turns overlap. */
export const hostThatReadsTwice = race('hostThatReadsTwice', (race) => {
  const { received, read } = createHost(race)
  const { manager } = createAgentTasks({ clock: race.clock })
  const reminders = new AsyncTaskReminderService(manager)
  const turn = async (answer: string): Promise<void> => {
    await read(reminders.generateReminder(), answer)
    reminders.markAllNotified()
  }
  for (const id of ['a', 'b']) manager.registerTask(task(id))
  manager.onTaskCompleted(() => void turn('the wake-up is answered'))
  return { received, complete: (id) => void manager.completeTask(id, {}), ask: () => turn('the question is answered') }
})

/** Right: each message leases the results it carries, and acknowledges or releases them when it ends. */
export const hostWithLeases = race('hostWithLeases', (race) => {
  const { received, read } = createHost(race)
  const tasks = createAgentTasks({
    clock: race.clock,
    isAgentBusy: () => false,
    triggerAgentTurn: (text) => read(text, 'the wake-up is answered'),
  })
  for (const id of ['a', 'b']) tasks.manager.registerTask(task(id))
  return {
    received,
    complete: (id) => void tasks.manager.completeTask(id, {}),
    ask: async () => {
      const { reminder } = tasks.beforeTurn()
      await read(reminder?.text ?? '', 'the question is answered')
      tasks.afterTurn({ accepted: true })
    },
  }
})
