/** Lives of async tasks: of this package, of a bare actor of the same chart, of seed 000, and of a parent that spawns. */
import { assign, createActor, setup, type ActorRefFrom } from 'xstate'
import { asyncTaskMachine } from '../../../machines/async-task.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { SeedAsyncTaskManager } from '../seed-000/async-task-manager.js'
import type { Subject } from '../subject.js'

/** How many other tasks there are. */
export interface Crowd {
  readonly live: number
  /** Ended, told of, and kept because the history is long enough. */
  readonly retained?: number
  /** They are the first tasks of the process. Otherwise others have come and gone before. */
  readonly isFirst?: boolean
}

/**
 * V8 decides by the first objects of a kind whether it makes the later ones where it keeps what lives long, and does not change its mind
 * while the heap is large. A process in which no task has ended yet would be measured for that.
 */
const EARLIER_LIVES = 5000

const OUTPUT = { final_message: 'done' }

const taskOf = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'look into it' })

/** The crowd belongs to someone else. */
function gather(manager: AsyncTaskManager, { live, retained = 0 }: Crowd): void {
  for (let n = 0; n < live; n += 1) manager.registerTask({ ...taskOf(`live-${n}`), owner: 'crowd' })
  for (let n = 0; n < retained; n += 1) {
    manager.registerTask({ ...taskOf(`retained-${n}`), owner: 'crowd' })
    manager.completeTask(`retained-${n}`, OUTPUT)
    manager.markNotified(`retained-${n}`)
  }
}

/** Register, complete, lease, acknowledge, be pruned. */
export function managerLives(crowd: Crowd): Subject {
  const { retained = 0 } = crowd
  const manager = new AsyncTaskManager({ maxAsyncTasks: retained === 0 ? -1 : Math.ceil(retained / 2) })
  let count = 0
  const run = (times: number): undefined => {
    for (let n = 0; n < times; n += 1) {
      const id = `task-${(count += 1)}`
      manager.registerTask(taskOf(id))
      manager.completeTask(id, OUTPUT)
      manager.lease({ owner: 'main' })?.acknowledge()
    }
  }
  if (crowd.isFirst !== true) run(EARLIER_LIVES)
  gather(manager, crowd)
  return { run, close: () => manager.dispose() }
}

/** What XState alone does for a task of the same chart: create, start, one event to a final state. */
export function bareActors(): Subject {
  const machine = asyncTaskMachine.provide({ actions: { requestAbort: () => undefined } })
  let count = 0
  return {
    run: (times) => {
      for (let n = 0; n < times; n += 1) {
        const id = `task-${(count += 1)}`
        const actor = createActor(machine, { id, input: { id, subagentName: 'agent', graceMs: 5000 } })
        actor.start()
        actor.send({ type: 'task.complete', output: OUTPUT })
      }
      return undefined
    },
  }
}

/** The same life as seed 000 has it: register, complete, look for what is owed, mark it; the next completion prunes. */
export function seedLives({ live }: Crowd): Subject {
  const manager = new SeedAsyncTaskManager(-1)
  let count = 0
  const run = (times: number): undefined => {
    for (let n = 0; n < times; n += 1) {
      const id = `task-${(count += 1)}`
      manager.registerTask(taskOf(id))
      manager.completeTask(id, OUTPUT)
      for (const task of manager.getPendingNotifications()) manager.markNotified(task.id)
    }
  }
  run(EARLIER_LIVES)
  for (let n = 0; n < live; n += 1) manager.registerTask(taskOf(`live-${n}`))
  return { run }
}

/** Launches, whose tasks are cancelled and forgotten before the next round. */
export function managerLaunches({ live }: Crowd): Subject {
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, graceMs: 0 })
  gather(manager, { live })
  const never = new Promise<Record<string, unknown>>(() => undefined)
  let launched: string[] = []
  return {
    prepare: async () => {
      for (const id of launched) manager.cancelTask(id)
      launched = []
      await new Promise((resolve) => setTimeout(resolve, 5))
    },
    run: (times) => {
      for (let n = 0; n < times; n += 1) {
        launched.push(manager.launch({ subagentName: 'agent', goalPrompt: 'look into it' }, () => never).id)
      }
      return undefined
    },
    close: () => manager.dispose(),
  }
}

/** The same with the usual means of XState: a parent that spawns, with its refs in a Map that is not copied. */
export function spawnLaunches({ live }: Crowd): Subject {
  const machine = asyncTaskMachine.provide({ actions: { requestAbort: () => undefined } })
  const parent = setup({
    types: {
      context: {} as { readonly refs: Map<string, ActorRefFrom<typeof machine>> },
      events: {} as { readonly type: 'task.register'; readonly id: string },
    },
    actors: { task: machine },
    actions: {
      spawnTask: assign(({ context, event, spawn }) => {
        const { id } = event
        context.refs.set(id, spawn('task', { id, input: { id, subagentName: 'agent', graceMs: 5000 } }))
        return {}
      }),
    },
  }).createMachine({
    context: () => ({ refs: new Map() }),
    on: { 'task.register': { actions: 'spawnTask' } },
  })
  const actor = createActor(parent)
  actor.start()
  const { refs } = actor.getSnapshot().context
  let count = 0
  const launch = (): string => {
    const id = `task-${(count += 1)}`
    actor.send({ type: 'task.register', id })
    return id
  }
  for (let n = 0; n < live; n += 1) launch()
  let launched: string[] = []
  return {
    prepare: () => {
      for (const id of launched) {
        refs.get(id)?.send({ type: 'task.cancel' })
        refs.delete(id)
      }
      launched = []
    },
    run: (times) => {
      for (let n = 0; n < times; n += 1) launched.push(launch())
      return undefined
    },
  }
}
