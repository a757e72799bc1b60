/** A trigger that loses a completion, and one that does not. */
import { AsyncTaskAutoTrigger, AsyncTaskManager, AsyncTaskReminderService } from 'agent-tasks'
import type { Race, RaceOptions } from 'agent-tasks/testing'
import { BehaviorSubject } from 'rxjs'

function createWorld(race: Race) {
  const manager = new AsyncTaskManager({ clock: race.clock })
  const reminders = new AsyncTaskReminderService(manager)
  const busy$ = new BehaviorSubject(false)
  const received: string[] = []
  /** A turn of the agent: it reads a message, and is busy until the model has answered. */
  const turn = async (text: string): Promise<void> => {
    busy$.next(true)
    received.push(...Array.from(text.matchAll(/"agent_id": "(\w+)"/g), ([, id = '']) => id))
    race.note(`the agent has received ${received.join(' and ')}`)
    await race.pause('the model answers')
    busy$.next(false)
  }
  for (const id of ['a', 'b']) manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'help' })
  return { manager, reminders, busy$, received, turn }
}

type World = ReturnType<typeof createWorld>

/** Two tasks end, and the agent must receive each result once. */
const race = (name: string, connect: (world: World) => unknown): RaceOptions<World> => ({
  name,
  source: { module: './lost-completion.js', name },
  setup: (race) => {
    const world = createWorld(race)
    connect(world)
    return world
  },
  actors: {
    worker: [
      { label: 'completes a', run: ({ manager }) => manager.completeTask('a', {}) },
      { label: 'completes b', run: ({ manager }) => manager.completeTask('b', {}) },
    ],
  },
  atEnd: { 'the agent has received both once': ({ received }) => received.toSorted().join() === 'a,b' },
  teardown: ({ manager }) => manager.dispose(),
})

/** Wrong: a result that arrives during a turn is not delivered, and then marked as notified. */
export const naiveTrigger = race('naiveTrigger', ({ manager, reminders, busy$, turn }) => {
  const deliver = async (): Promise<void> => {
    if (busy$.value) return
    await turn(reminders.generateReminder())
    reminders.markAllNotified()
  }
  manager.onTaskCompleted(() => void deliver())
})

/** Right: each delivery acknowledges the results it carried, and looks for more when it has ended. */
export const autoTrigger = race('autoTrigger', ({ manager, reminders, busy$, turn }) =>
  new AsyncTaskAutoTrigger(manager, reminders, busy$, turn).subscribe(),
)
