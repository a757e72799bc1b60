/** Planted faults of S10, through public options and wrappers only: the async task does not follow its command task. */
import { map } from 'rxjs'
import type { TaskManager } from '../../src/command-tasks/task-manager.js'
import { createSubmitCommandsTool, type SubmitCommandsOptions } from '../../src/tools/submit-commands.js'
import { overriding } from '../support/overriding.js'
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

/** The tool with another task manager. */
const managerWith = (
  options: SubmitCommandsOptions,
  replaced: Partial<Record<keyof TaskManager, unknown>>,
): Partial<SubmitCommandsOptions> => ({
  taskManager: overriding(managerOf(options), replaced as Partial<TaskManager>),
})

const managerOf = ({ taskManager }: SubmitCommandsOptions): TaskManager => taskManager as TaskManager

export const agentFaults: readonly AgentFault[] = [
  {
    name: 'cancelled-by-others-counts-as-completed',
    invariant: 'S10',
    description: 'The tool takes a command task that was cancelled by another client for a completed one.',
    createTool: withOptions((options) =>
      managerWith(options, {
        complete$: managerOf(options).complete$.pipe(
          map((message) => (message.status === 'cancelled' ? { ...message, status: 'completed' } : message)),
        ),
      }),
    ),
  },
  {
    name: 'failed-counts-as-cancelled',
    invariant: 'S10',
    description: 'The tool takes a failed command task for a cancelled one.',
    createTool: withOptions((options) =>
      managerWith(options, {
        complete$: managerOf(options).complete$.pipe(
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
    name: 'acknowledges-a-failed-run',
    invariant: 'S10',
    description: 'An async task whose run has failed is acknowledged at once.',
    createTool: withOptions(({ getAsyncTaskManager }) => {
      const manager = getAsyncTaskManager()
      manager.onTaskFailed(({ id }) => manager.markNotified(id))
      return {}
    }),
  },
  {
    name: 'owed-to-the-default-owner',
    invariant: 'S10',
    description: 'The result is owed to the default owner instead of the agent.',
    createTool: ({ owner: _, ...options }) => createSubmitCommandsTool(options),
  },
]
