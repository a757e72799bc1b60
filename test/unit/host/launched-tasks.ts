/** A host whose runs end when the test says so. */
import { onTestFinished, vi } from 'vitest'
import { createMachine } from 'xstate'
import type { AsyncTaskMachine } from '../../../machines/async-task.js'
import { createAgentTasks, type AgentTasksOptions, type RunContext } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { deferred } from '../tools/tool-host.js'

/** Lets everything happen that needs no time. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A task that ignores every event. */
export const deafMachine = createMachine({
  initial: 'running',
  states: { running: {} },
}) as unknown as AsyncTaskMachine

/** A host with the subagent `worker`, whose runs the test ends, and `echo`, which returns its goal. */
export function setUp(options: Omit<AgentTasksOptions, 'subagents' | 'taskManager' | 'commands'> = {}) {
  const clock = createManualClock()
  const onError = vi.fn()
  const runs: (ReturnType<typeof deferred<string>> & { readonly context: RunContext })[] = []
  const tasks = createAgentTasks({
    clock,
    onError,
    ...options,
    subagents: {
      echo: ({ goal }: { readonly goal: string }) => goal,
      worker: (_request: unknown, context: RunContext): Promise<string> => {
        const run = deferred<string>()
        runs.push({ ...run, context })
        context.signal.addEventListener('abort', () => run.reject(context.signal.reason as Error))
        return run.promise
      },
    },
  })
  onTestFinished(() => tasks.dispose())
  const { manager } = tasks
  /** The ids of the tasks whose results are owed. */
  const owed = (): string[] => manager.getPendingNotifications().map(({ id }) => id)
  return { clock, tasks, manager, onError, runs, owed }
}
