/** A task manager on a manual clock, with local instances whose calls the test ends. */
import { setImmediate } from 'node:timers/promises'
import { vi } from 'vitest'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import type { TaskManagerOptions } from '../../src/command-tasks/options.js'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../src/command-tasks/instances/local-instance.js'
import type { InstanceToolContext } from '../../src/protocol/instance-tools.js'
import type { TaskCompleteMessage, TaskProgressMessage, TaskSubmitMessage } from '../../src/protocol/command-tasks.js'
import { createJumpingClock } from './jumping-clock.js'

/** One call of the tool `step`. */
export interface HostCall extends InstanceToolContext {
  readonly instanceId: string
  /** The argument `name` of the command. */
  readonly name: string
  finish(value?: unknown): void
  fail(error: unknown): void
}

export type CommandHost = ReturnType<typeof createCommandHost>

export function createCommandHost(options: Partial<TaskManagerOptions> = {}) {
  const clock = createJumpingClock(10_000)
  const onError = vi.fn()
  const instances = new InstanceManager({ clock, onError })
  const tasks = new TaskManager({ clock, instances, onError, ...options })
  const told: (TaskProgressMessage | TaskCompleteMessage)[] = []
  const calls: HostCall[] = []
  let warnings: unknown[][] = []
  tasks.on('progress', (message) => told.push(message))
  tasks.on('complete', (message) => told.push(message))

  const connect = (id = 'one') =>
    instances.connect(
      localInstance({
        id,
        clock,
        tools: [
          {
            name: 'step',
            execute: (input, context) =>
              new Promise((finish, fail) =>
                calls.push({
                  ...context,
                  instanceId: id,
                  name: String((input as { name?: unknown }).name),
                  finish,
                  fail,
                }),
              ),
          },
        ],
      }),
    )

  return {
    clock,
    instances,
    tasks,
    onError,
    /** Every event of the manager, in order. */
    told,
    calls,
    connect,
    /** Submits a task with one command for each name. @throws Error when the task is refused */
    submit(names: string | string[], more: Partial<TaskSubmitMessage> & { timeout?: number } = {}): string {
      const { timeout, ...rest } = more
      const commands = [names]
        .flat()
        .map((name) => ({ tool_name: 'step', args: { name }, ...(timeout !== undefined && { timeout }) }))
      const result = tasks.submitTask({ task_name: 'a task', commands, ...rest })
      if ('error' in result) throw new Error(`${result.code}: ${result.error}`)
      return result.taskId
    },
    /** Runs everything that is ready to run. */
    settle: async (): Promise<void> => {
      for (let turn = 0; turn < 5; turn += 1) await setImmediate()
    },
    /** The latest call with this name. */
    call: (name: string): HostCall => {
      const call = calls.findLast((one) => one.name === name)
      if (call === undefined) {
        throw new Error(`there was no call of ${name}; there were ${calls.map((one) => one.name).join(', ')}`)
      }
      return call
    },
    of: (taskId: string) => told.filter((message) => message.taskId === taskId),
    completes: () => told.flatMap((message) => (message.type === 'task_complete' ? [message] : [])),
    /** The events of a task in short form: `cmd_1 running`, `cmd_1 success`, `completed`. */
    story: (taskId: string): string[] =>
      told
        .filter((message) => message.taskId === taskId)
        .map((message) =>
          message.type === 'task_progress' ? `${message.commandId} ${message.status}` : message.status,
        ),
    /** Disposes everything. Returns the console warnings that were printed meanwhile. */
    dispose: async (): Promise<unknown[][]> => {
      const disposed = Promise.all([tasks.dispose(), instances.dispose()])
      for (let turn = 0; turn < 20; turn += 1) {
        await setImmediate()
        clock.advance(1000)
      }
      await disposed
      return warnings.splice(0)
    },
    /** Collects the console warnings of the state machines. */
    watchConsole: (): void => {
      warnings = []
      vi.spyOn(console, 'warn').mockImplementation((...args: unknown[]) => void warnings.push(args))
    },
  }
}
