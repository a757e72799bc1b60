/**
 * Planted faults of the lanes, through public options and wrappers only.
 *
 * It is longer than most files because it is one list.
 */
import { map, merge } from 'rxjs'
import { assign } from 'xstate'
import { commandTaskMachine } from '../../machines/command-task.js'
import { laneMachine } from '../../machines/lane.js'
import type { Engine, Outcome } from '../../src/engine/engine.js'
import { createInProcessEngine } from '../../src/engine/in-process.js'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import type { TaskManagerOptions } from '../../src/command-tasks/options.js'
import type { Task, TaskCompleteMessage } from '../../src/protocol/command-tasks.js'
import type { CreateTaskManager } from './lanes.property.js'

export interface LaneFault {
  readonly name: string
  readonly invariant: 'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'S6' | 'S7' | 'S8' | 'S9'
  readonly description: string
  readonly create: CreateTaskManager
  /** Only the model notices it: the model compares everything, the race checks the invariants. */
  readonly isForModel?: true
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

/** Changes the events of `complete$`. */
function withCompletes(change: (message: TaskCompleteMessage, manager: TaskManager) => TaskCompleteMessage) {
  return withManager((manager) => {
    const changed$ = manager.complete$.pipe(map((message) => change(message, manager)))
    Object.defineProperty(manager, 'complete$', { value: changed$ })
  })
}

function engineWith(options: TaskManagerOptions, change: (engine: Engine) => Engine): Partial<TaskManagerOptions> {
  const { clock } = options
  return { engine: change(createInProcessEngine(clock === undefined ? {} : { clock })) }
}

export const laneFaults: readonly LaneFault[] = [
  {
    name: 'completes-twice',
    invariant: 'S1',
    description: 'Subscribers of complete$ get each event twice.',
    create: withManager((manager) => {
      Object.defineProperty(manager, 'complete$', { value: merge(manager.complete$, manager.complete$) })
    }),
  },
  {
    name: 'cancel-does-nothing-to-a-queued-task',
    invariant: 'S1',
    description: 'Cancelling a queued task returns true and does nothing.',
    create: withManager((manager) => {
      const cancel = manager.cancelTask.bind(manager)
      manager.cancelTask = (id) => (manager.getTask(id)?.status === 'queued' ? true : cancel(id))
    }),
  },
  {
    name: 'disconnect-ignores-the-tasks',
    invariant: 'S1',
    description: 'The tasks of a lost instance do not end.',
    create: withOptions(({ instances }) => {
      instances.onDisconnect = () => () => undefined
      return {}
    }),
  },
  {
    name: 'ends-at-the-first-success',
    invariant: 'S2',
    description: 'A task completes when its first command has succeeded.',
    create: withOptions(() => ({
      machines: { task: commandTaskMachine.provide({ guards: { isLastCommand: () => true } }) },
    })),
  },
  {
    name: 'two-at-once',
    invariant: 'S3',
    description: 'The engine reports a call as settled as soon as it has started.',
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
    description: 'A task repeats its first command.',
    create: withOptions(() => ({
      machines: {
        task: commandTaskMachine.provide({ actions: { advance: assign({ index: ({ context }) => context.index }) } }),
      },
    })),
  },
  {
    name: 'no-wait-for-the-grace',
    invariant: 'S5',
    description: 'The next command starts as soon as the previous one was aborted.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({ start: (work) => engine.start({ ...work, graceMs: 0 }) })),
    ),
  },
  {
    name: 'never-aborts',
    invariant: 'S5',
    description: 'A call is not aborted.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({
        start: (work) => ({ settled: engine.start(work).settled, abort: () => undefined }),
      })),
    ),
  },
  {
    name: 'capacity-counts-what-was-cancelled',
    invariant: 'S8',
    description: 'Ended tasks count towards the queue capacity.',
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
    description: 'The queue has no limit.',
    create: withOptions(() => ({ maxQueueSize: 1_000 })),
  },
  {
    name: 'starts-after-the-end',
    invariant: 'S4',
    description: 'The instance gets another call after a task was cancelled.',
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
    description: 'An error of a listener reaches the caller of cancelTask.',
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
  {
    name: 'cancels-again',
    invariant: 'S1',
    description: 'Cancelling an ended task returns true.',
    create: withManager((manager) => {
      const cancel = manager.cancelTask.bind(manager)
      manager.cancelTask = (id) => cancel(id) || manager.getTask(id) !== undefined
    }),
  },
  {
    name: 'leaves-skipped-commands-open',
    invariant: 'S2',
    description: 'Commands that never ran are pending in the complete event.',
    create: withCompletes((message) => ({
      ...message,
      results: message.results.map((one) => (one.status === 'skipped' ? { ...one, status: 'pending' } : one)),
    })),
  },
  {
    name: 'hides-which-command-was-stopped',
    invariant: 'S2',
    description: 'The command that was running looks as if it had never started.',
    create: withCompletes((message) => ({
      ...message,
      results: message.results.map(({ error, ...one }) =>
        one.status === 'skipped' || error === undefined ? one : { ...one, error },
      ),
    })),
  },
  {
    name: 'times-from-the-submit',
    invariant: 'S2',
    description: 'The duration includes the time in the queue.',
    create: withCompletes(({ summary, ...message }, manager) => {
      const createdAt = manager.getTask(message.taskId)?.createdAt ?? message.timestamp
      return { ...message, summary: { ...summary, duration: message.timestamp - createdAt } }
    }),
  },
  {
    name: 'lane-stalls',
    invariant: 'S3',
    description: 'A lane does not start its next call when one has settled.',
    create: withOptions(() => {
      let looks = 0
      return { machines: { lane: laneMachine.provide({ guards: { hasNext: () => (looks += 1) % 2 === 1 } }) } }
    }),
  },
  {
    name: 'late-result-for-the-next-call',
    invariant: 'S4',
    description: 'The late result of an abandoned call ends the current call.',
    create: withOptions((options) =>
      engineWith(options, (engine) => {
        let settleNow: (outcome: Outcome) => void = () => undefined
        return {
          start: (work) => {
            const run = engine.start({ ...work, onLate: (outcome) => settleNow(outcome) })
            const stolen = new Promise<Outcome>((resolve) => (settleNow = resolve))
            return { ...run, settled: Promise.race([run.settled, stolen]) }
          },
        }
      }),
    ),
    isForModel: true,
  },
  {
    name: 'late-results-are-not-counted',
    invariant: 'S4',
    description: 'The late result of an abandoned call is not counted.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({ start: (work) => engine.start({ ...work, onLate: () => undefined }) })),
    ),
    isForModel: true,
  },
  {
    name: 'waits-longer-than-the-grace',
    invariant: 'S5',
    description: 'An aborted call holds its lane ten times longer than its grace.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({ start: (work) => engine.start({ ...work, graceMs: work.graceMs * 10 }) })),
    ),
    isForModel: true,
  },
  {
    name: 'a-handler-that-throws-is-dropped',
    invariant: 'S6',
    description: 'A handler that has thrown gets no more events.',
    create: withManager((manager) => {
      const on = manager.on.bind(manager)
      manager.on = (event, handler) => {
        let hasThrown = false
        return on(event, (message) => {
          if (hasThrown) return
          hasThrown = true
          handler(message)
          hasThrown = false
        })
      }
    }),
    isForModel: true,
  },
  {
    name: 'steps-emitted-late',
    invariant: 'S7',
    description: 'Handlers get a step one microtask late, maybe after the complete.',
    create: withManager((manager) => {
      const on = manager.on.bind(manager)
      manager.on = (event, handler) =>
        on(event, (message) => (event === 'progress' ? queueMicrotask(() => handler(message)) : handler(message)))
    }),
    isForModel: true,
  },
  {
    name: 'position-counts-what-has-ended',
    invariant: 'S8',
    description: 'queuePosition counts all tasks of the instance, ended ones too.',
    create: withManager((manager) => {
      const submit = manager.submitTask.bind(manager)
      manager.submitTask = (message) => {
        const result = submit(message)
        if ('error' in result) return result
        const { instanceId } = manager.getTask(result.taskId) ?? {}
        return { ...result, queuePosition: manager.listTasks(instanceId).length }
      }
    }),
  },
  {
    name: 'keeps-too-many',
    invariant: 'S9',
    description: 'The number of retained tasks has no limit.',
    create: withOptions(() => ({ maxRetained: 1_000_000 })),
    isForModel: true,
  },
  {
    name: 'keeps-too-long',
    invariant: 'S9',
    description: 'Retained tasks do not expire.',
    create: withOptions(() => ({ retentionMs: 1_000_000 })),
    isForModel: true,
  },
  {
    name: 'prunes-too-early',
    invariant: 'S9',
    description: 'An ended task is pruned at once.',
    create: withManager((manager) => {
      manager.on('complete', () => manager.cleanupTasks(-1))
    }),
    isForModel: true,
  },
  {
    name: 'a-lane-stays',
    invariant: 'S9',
    description: 'An idle lane is not removed.',
    create: withManager((manager, { instances }) => {
      const depths = (): TaskManager['laneDepths'] => Reflect.get(TaskManager.prototype, 'laneDepths', manager)
      const get = (): TaskManager['laneDepths'] =>
        new Map([...instances.list().map(({ id }) => [id, 0] as const), ...depths()])
      Object.defineProperty(manager, 'laneDepths', { get })
    }),
    isForModel: true,
  },
  {
    name: 'a-timer-stays',
    invariant: 'S9',
    description: 'Every call leaves a timer.',
    create: withOptions((options) =>
      engineWith(options, (engine) => ({
        start: (work) => {
          options.clock?.setTimeout(() => undefined, 3_600_000)
          return engine.start(work)
        },
      })),
    ),
  },
]
