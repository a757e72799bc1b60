/** Lives of async tasks: in this package, as bare actors of the same machine, in seed 000, and as children of a parent that spawns. */
import { assign, createActor, setup, type AnyActorRef } from 'xstate'
import type { AsyncTaskManager } from 'agent-tasks'
import { importEntry } from '../package.js'
import { SeedAsyncTaskManager } from '../seed-000/async-task-manager.js'
import type { Subject } from '../subject.js'
import { loadTaskMachine } from './task-machine.js'

/** The other tasks of the registry. */
export interface Others {
  readonly live: number
  /** Ended and delivered, and kept because the history is long enough. */
  readonly retained?: number
  /** Every task has a deadline, the measured ones too. */
  readonly hasDeadlines?: boolean
}

const OUTPUT = { final_message: 'done' }

const taskOf = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'look into it' })

/** Its deadline is in 15 to 30 minutes, after the run, and in no order. */
const timedTaskOf = (id: string, n: number) => ({
  id,
  subagentName: 'agent',
  goalPrompt: 'look into it',
  timeoutMs: 900_000 + ((n * 7919) % 900_000),
})

/** Registers the other tasks, for another owner. */
function addOthers(manager: AsyncTaskManager, { live, retained = 0, hasDeadlines = false }: Others): void {
  for (let n = 0; n < live; n += 1) {
    const task = hasDeadlines ? timedTaskOf(`live-${n}`, n) : taskOf(`live-${n}`)
    manager.registerTask({ ...task, owner: 'others' })
  }
  for (let n = 0; n < retained; n += 1) {
    manager.registerTask({ ...taskOf(`retained-${n}`), owner: 'others' })
    manager.completeTask(`retained-${n}`, OUTPUT)
    manager.markNotified(`retained-${n}`)
  }
}

/** Register, complete, lease, acknowledge; the acknowledgement prunes. */
export async function managerLives(others: Others, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const { retained = 0, hasDeadlines = false } = others
  const manager = new AsyncTaskManager({ maxAsyncTasks: retained === 0 ? -1 : Math.ceil(retained / 2) })
  addOthers(manager, others)
  let count = 0
  return {
    run: (times) => {
      for (let n = 0; n < times; n += 1) {
        const id = `task-${(count += 1)}`
        manager.registerTask(hasDeadlines ? timedTaskOf(id, count) : taskOf(id))
        manager.completeTask(id, OUTPUT)
        manager.lease({ owner: 'main' })?.acknowledge()
      }
      return undefined
    },
    close: () => manager.dispose(),
  }
}

/** Launch, run, end, lease, acknowledge: one after the other, or two at a time, of which the second waits for the slot of the first. */
export async function launchedLives({ waits }: { readonly waits: boolean }, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const manager = new AsyncTaskManager({ maxAsyncTasks: waits ? 1 : -1 })
  const atOnce = waits ? 2 : 1
  let left = 0
  let onEnded = (): void => undefined
  manager.onTaskCompleted(() => {
    left -= 1
    if (left === 0) onEnded()
  })
  let count = 0
  return {
    run: async (times) => {
      for (let done = 0; done < times; done += atOnce) {
        const ended = new Promise<void>((resolve) => (onEnded = resolve))
        left = atOnce
        for (let n = 0; n < atOnce; n += 1) {
          manager.launch({ ...taskOf(`task-${(count += 1)}`), whenFull: 'queue' }, () => OUTPUT)
        }
        await ended
        manager.lease({ owner: 'main' })?.acknowledge()
      }
      return undefined
    },
    close: () => manager.dispose(),
  }
}

/** What XState alone does for a task: create an actor, start it, and send the event that ends it. */
export async function bareActors(_params: unknown, checkout: string): Promise<Subject> {
  const { machine, inputOf } = await loadTaskMachine(checkout)
  let count = 0
  return {
    run: (times) => {
      for (let n = 0; n < times; n += 1) {
        const id = `task-${(count += 1)}`
        const actor = createActor(machine, { id, input: inputOf(id) })
        actor.start()
        actor.send({ type: 'task.complete', output: OUTPUT })
      }
      return undefined
    },
  }
}

/** The same life in seed 000: register, complete, look for what is owed, mark it; the next completion prunes. */
export function seedLives({ live }: Others): Subject {
  const manager = new SeedAsyncTaskManager(-1)
  for (let n = 0; n < live; n += 1) manager.registerTask(taskOf(`live-${n}`))
  let count = 0
  return {
    run: (times) => {
      for (let n = 0; n < times; n += 1) {
        const id = `task-${(count += 1)}`
        manager.registerTask(taskOf(id))
        manager.completeTask(id, OUTPUT)
        for (const task of manager.getPendingNotifications()) manager.markNotified(task.id)
      }
      return undefined
    },
  }
}

/** Launches, which are cancelled before the next round. */
export async function managerLaunches(others: Others, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, graceMs: 0 })
  addOthers(manager, others)
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

/** The usual way in XState: a parent that spawns its children, with their refs in a Map that is not copied. */
export async function spawnLaunches({ live }: Others, checkout: string): Promise<Subject> {
  const { machine, inputOf } = await loadTaskMachine(checkout)
  const parent = setup({
    types: {
      context: {} as { readonly refs: Map<string, AnyActorRef> },
      events: {} as { readonly type: 'task.register'; readonly id: string },
    },
    actors: { task: machine },
    actions: {
      spawnTask: assign(({ context, event: { id }, spawn }) => {
        context.refs.set(id, spawn('task', { id, input: inputOf(id) }))
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
