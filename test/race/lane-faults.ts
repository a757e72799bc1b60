/** Ways to break the lanes on purpose, one invariant at a time, through public options and wrappers alone. */
import { merge } from 'rxjs'
import { assign } from 'xstate'
import { commandTaskMachine } from '../../machines/command-task.js'
import type { Engine } from '../../src/engine/engine.js'
import { createInProcessEngine } from '../../src/engine/in-process.js'
import { TaskManager, type TaskManagerOptions } from '../../src/command-tasks/task-manager.js'
import type { Task } from '../../src/protocol/command-tasks.js'
import type { CreateTaskManager } from './lanes.property.js'

export interface LaneFault {
  readonly name: string
  readonly invariant: 'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'S6' | 'S7' | 'S8' | 'S9'
  readonly description: string
  readonly create: CreateTaskManager
}

const withOptions =
  (change: (options: TaskManagerOptions) => Partial<TaskManagerOptions>): CreateTaskManager =>
  (options) =>
    new TaskManager({ ...options, ...change(options) })

const withManager =
  (change: (manager: TaskManager, options: TaskManagerOptions) => void): CreateTaskManager =>
  (options) => {
    const manager = new TaskManager(options)
    change(manager, options)
    return manager
  }

function engineWith(options: TaskManagerOptions, change: (engine: Engine) => Engine): Partial<TaskManagerOptions> {
  const { clock } = options
  return { engine: change(createInProcessEngine(clock === undefined ? {} : { clock })) }
}

export const laneFaults: readonly LaneFault[] = [
  {
    name: 'completes-twice',
    invariant: 'S1',
    description: 'Listeners of the stream get each complete two times.',
    create: withManager((manager) => {
      Object.defineProperty(manager, 'complete$', { value: merge(manager.complete$, manager.complete$) })
    }),
  },
  {
    name: 'cancel-does-nothing-to-a-queued-task',
    invariant: 'S1',
    description: 'Only a task that runs can be cancelled; a queued one answers true and goes on.',
    create: withManager((manager) => {
      const cancel = manager.cancelTask.bind(manager)
      manager.cancelTask = (id) => (manager.getTask(id)?.status === 'queued' ? true : cancel(id))
    }),
  },
  {
    name: 'disconnect-forgets-the-tasks',
    invariant: 'S1',
    description: 'A lost instance leaves its tasks as they are.',
    create: withOptions(({ instances }) => {
      instances.onDisconnect = () => () => undefined
      return {}
    }),
  },
  {
    name: 'ends-at-the-first-success',
    invariant: 'S2',
    description: 'A task is complete when one of its commands has succeeded.',
    create: withOptions(() => ({
      machines: { task: commandTaskMachine.provide({ guards: { isLastCommand: () => true } }) },
    })),
  },
  {
    name: 'two-at-once',
    invariant: 'S3',
    description: 'The engine says that a call has settled as soon as it has started.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({
        start: (work) => {
          const run = engine.start(work)
          return { ...run, settled: Promise.resolve({ type: 'returned', value: {} }) }
        },
      })),
    ),
  },
  {
    name: 'command-repeated',
    invariant: 'S7',
    description: 'A task never goes on to its next command.',
    create: withOptions(() => ({
      machines: {
        task: commandTaskMachine.provide({ actions: { advance: assign({ index: ({ context }) => context.index }) } }),
      },
    })),
  },
  {
    name: 'no-wait-for-the-grace',
    invariant: 'S5',
    description: 'The next command starts as soon as the one before was aborted.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({ start: (work) => engine.start({ ...work, graceMs: 0 }) })),
    ),
  },
  {
    name: 'never-aborts',
    invariant: 'S5',
    description: 'A command that was given up is not told.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({
        start: (work) => ({ settled: engine.start(work).settled, abort: () => undefined }),
      })),
    ),
  },
  {
    name: 'capacity-counts-what-was-cancelled',
    invariant: 'S8',
    description: 'Ended tasks take places in the queue.',
    create: withManager((manager, options) => {
      const submit = manager.submitTask.bind(manager)
      manager.submitTask = (message) => {
        const count = manager.listTasks(message.instanceId).length
        return count >= (options.maxQueueSize ?? 0) ? { error: 'full', code: 'QUEUE_FULL' } : submit(message)
      }
    }),
  },
  {
    name: 'no-capacity',
    invariant: 'S8',
    description: 'The queue takes whatever comes.',
    create: withOptions(() => ({ maxQueueSize: 1_000 })),
  },
  {
    name: 'starts-after-the-end',
    invariant: 'S4',
    description: 'The instance is asked once more when a task has been cancelled.',
    create: withManager((manager, { instances }) => {
      const cancel = manager.cancelTask.bind(manager)
      manager.cancelTask = (id) => {
        const task: Task | undefined = manager.getTask(id)
        const isDone = cancel(id)
        const entry = task === undefined ? undefined : instances.get(task.instanceId)
        const { signal } = new AbortController()
        if (isDone) {
          void entry?.instance.callTool({
            name: 'tool',
            arguments: {},
            taskId: id,
            signal,
            onProgress: () => undefined,
          })
        }
        return isDone
      }
    }),
  },
  {
    name: 'a-listener-stops-the-rest',
    invariant: 'S6',
    description: 'What a listener throws reaches whoever caused the change.',
    create: withManager((manager) => {
      const cancel = manager.cancelTask.bind(manager)
      const listeners: ((message: never) => void)[] = []
      const on = manager.on.bind(manager)
      manager.on = ((event: 'complete', handler: (message: never) => void) => {
        listeners.push(handler)
        return on(event, handler as never)
      }) as typeof manager.on
      manager.cancelTask = (id) => {
        const isDone = cancel(id)
        for (const listener of isDone ? listeners : []) listener(undefined as never)
        return isDone
      }
    }),
  },
]
