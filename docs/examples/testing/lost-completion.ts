/** A trigger that loses a completion, and one that does not. */
import { AsyncTaskAutoTrigger, AsyncTaskManager, AsyncTaskReminderService } from 'agent-tasks'
import type { Race, RaceOptions } from 'agent-tasks/testing'
import { BehaviorSubject } from 'rxjs'

function createWorld(race: Race) {
  const manager = new AsyncTaskManager({ clock: race.clock })
  const reminders = new AsyncTaskReminderService(manager)
  const busy$ = new BehaviorSubject(false)
  const told: string[] = []
  /** A turn of the agent: it reads a message, and is busy until the model has answered. */
  const turn = async (text: string): Promise<void> => {
    busy$.next(true)
    told.push(...Array.from(text.matchAll(/"agent_id": "(\w+)"/g), ([, id = '']) => id))
    race.note(`the agent reads of ${told.join(' and ')}`)
    await race.pause('the model answers')
    busy$.next(false)
  }
  for (const id of ['a', 'b']) manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'help' })
  return { manager, reminders, busy$, told, turn }
}

type World = ReturnType<typeof createWorld>

/** Two tasks end, and each must be told once, whenever the agent has time. */
const race = (name: string, wake: (world: World) => unknown): RaceOptions<World> => ({
  name,
  source: { module: './lost-completion.js', name },
  setup: (race) => {
    const world = createWorld(race)
    wake(world)
    return world
  },
  actors: {
    worker: [
      { label: 'completes a', run: ({ manager }) => manager.completeTask('a', {}) },
      { label: 'completes b', run: ({ manager }) => manager.completeTask('b', {}) },
    ],
  },
  atEnd: { 'both were told, once': ({ told }) => told.toSorted().join() === 'a,b' },
  teardown: ({ manager }) => manager.dispose(),
})

/** Wrong: what ends during a turn is not told, and then marked as told. */
export const naiveTrigger = race('naiveTrigger', ({ manager, reminders, busy$, turn }) => {
  const tell = async (): Promise<void> => {
    if (busy$.value) return
    await turn(reminders.generateReminder())
    reminders.markAllNotified()
  }
  manager.onTaskCompleted(() => void tell())
})

/** Right: a delivery acknowledges what it carried, and looks again when it is over. */
export const autoTrigger = race('autoTrigger', ({ manager, reminders, busy$, turn }) =>
  new AsyncTaskAutoTrigger(manager, reminders, busy$, turn).subscribe(),
)
