/** Planted faults of command tasks with a store, through public options and the ports alone. */
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import type { Store, StoreContents } from '../../src/store/index.js'
import type { RestartWiring } from './restarts.property.js'
import type { StoredCommandTask } from '../../src/store/store.js'

export interface RestartFault {
  readonly name: string
  readonly invariant: 'K12'
  readonly description: string
  readonly wiring: RestartWiring
}

const withStore = (change: (store: Store) => Partial<Store>): RestartWiring => ({
  createTaskManager: (options) => {
    const { store } = options
    return new TaskManager({ ...options, ...(store && { store: { ...store, ...change(store) } }) })
  },
})

const withContents = (change: (contents: StoreContents) => Partial<StoreContents>): RestartWiring =>
  withStore((store) => ({
    open: () => {
      const contents = store.open()
      return { ...contents, ...change(contents) }
    },
  }))

const queuedAgain = (row: StoredCommandTask): StoredCommandTask => {
  const { startedAt: _, ...record } = row.record
  return row.status === 'running' ? { ...row, status: 'queued', record: { ...record, status: 'queued' } } : row
}

export const restartFaults: readonly RestartFault[] = [
  {
    name: 'answers-before-the-write',
    invariant: 'K12',
    description: 'What is written reaches the disk a moment after the write has returned.',
    wiring: withStore((store) => ({
      write: (changes) => {
        void Promise.resolve()
          .then(() => store.write(changes))
          .catch(() => undefined)
        return Promise.resolve()
      },
    })),
  },
  {
    name: 'writes-what-was-refused',
    invariant: 'K12',
    description: 'The row of a submission that could not be stored is written with the next write.',
    wiring: {
      createTaskManager: (options) => {
        const manager = new TaskManager(options)
        if (manager.persistence !== undefined) manager.persistence.withdraw = () => undefined
        return manager
      },
    },
  },
  {
    name: 'runs-the-command-in-flight-again',
    invariant: 'K12',
    description: 'A task that ran when the process ended is queued again.',
    wiring: withContents(({ commandTasks }) => ({ commandTasks: commandTasks.map(queuedAgain) })),
  },
  {
    name: 'ignores-the-calls-of-hello',
    invariant: 'K12',
    description: 'A worker gets the next command while it is busy with a call of an earlier process.',
    wiring: {
      changeInstance: (instance) => ({
        ...instance,
        ...(instance.connection && { connection: { ...instance.connection, freed: () => undefined } }),
      }),
    },
  },
  {
    name: 'forgets-the-results',
    invariant: 'K12',
    description: 'Results of an interrupted task are not stored.',
    wiring: withStore((store) => ({
      write: (changes) => store.write(changes.filter(({ table }) => table !== 'commands')),
    })),
  },
  {
    name: 'turns-the-queue-round',
    invariant: 'K12',
    description: 'Queued tasks come back in the opposite order.',
    wiring: withContents(({ commandTasks }) => ({ commandTasks: [...commandTasks].reverse() })),
  },
  {
    name: 'forgets-the-keys',
    invariant: 'K12',
    description: 'Idempotency keys end with the process.',
    wiring: withContents(({ commandTasks }) => ({
      commandTasks: commandTasks.map(({ submission: _, ...row }) => row),
    })),
  },
]
