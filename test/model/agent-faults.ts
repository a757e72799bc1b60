/** Ways to part an async task from its command task (S10), through public options and wrappers alone. */
import { map } from 'rxjs'
import { createSubmitCommandsTool, type SubmitCommandsOptions } from '../../src/tools/submit-commands.js'
import type { CreateTool } from './agent-commands.property.js'

export interface AgentFault {
  readonly name: string
  readonly invariant: 'S10'
  readonly description: string
  readonly createTool: CreateTool
}

const withOptions =
  (change: (options: SubmitCommandsOptions) => Partial<SubmitCommandsOptions>): CreateTool =>
  (options) =>
    createSubmitCommandsTool({ ...options, ...change(options) })

/** The task manager as the tool sees it, with one thing otherwise. */
function managerWith(
  { taskManager }: SubmitCommandsOptions,
  change: Partial<Record<keyof SubmitCommandsOptions['taskManager'], unknown>>,
): Partial<SubmitCommandsOptions> {
  const seen = new Proxy(taskManager, {
    get: (target, name) => {
      if (Object.hasOwn(change, name)) return Reflect.get(change, name) as unknown
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return { taskManager: seen }
}

export const agentFaults: readonly AgentFault[] = [
  {
    name: 'cancelled-by-others-passes-for-done',
    invariant: 'S10',
    description: 'The tool takes a command task that someone else cancelled for one that completed.',
    createTool: withOptions((options) =>
      managerWith(options, {
        complete$: options.taskManager.complete$.pipe(
          map((message) => (message.status === 'cancelled' ? { ...message, status: 'completed' } : message)),
        ),
      }),
    ),
  },
  {
    name: 'failed-passes-for-cancelled',
    invariant: 'S10',
    description: 'A command task that fails is told of as one that was called off.',
    createTool: withOptions((options) =>
      managerWith(options, {
        complete$: options.taskManager.complete$.pipe(
          map(({ error: _, ...message }) =>
            message.status === 'failed' ? { ...message, status: 'cancelled' } : message,
          ),
        ),
      }),
    ),
  },
  {
    name: 'the-agent-cancels-alone',
    invariant: 'S10',
    description: 'The command task goes on when its async task is cancelled.',
    createTool: withOptions((options) => managerWith(options, { cancelTask: () => false })),
  },
  {
    name: 'nobody-is-owed',
    invariant: 'S10',
    description: 'An async task whose run has failed is acknowledged at once.',
    createTool: withOptions(({ getAsyncTaskManager }) => {
      const manager = getAsyncTaskManager()
      manager.onTaskFailed(({ id }) => manager.markNotified(id))
      return {}
    }),
  },
  {
    name: 'owed-to-another',
    invariant: 'S10',
    description: 'The end is owed to whoever is the default owner.',
    createTool: ({ owner: _, ...options }) => createSubmitCommandsTool(options),
  },
]
