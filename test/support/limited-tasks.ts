/** A manager on a manual clock. A test ends its runs one by one. For tests of queues, repeated runs and budgets. */
import { onTestFinished } from 'vitest'
import {
  AsyncTaskManager,
  type AsyncTaskManagerOptions,
  type RunContext,
  type RunFunction,
  type RunnerDefinition,
} from '../../src/index.js'
import { createManualClock } from '../../src/testing/index.js'
import type { LaunchTaskInput } from '../../src/protocol/async-tasks.js'

export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A run that ends only when it is aborted. */
export const untilAborted: RunFunction = (_input, { signal }) =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))

/** A run that was started. */
export interface StartedRun {
  readonly id: string
  readonly context: RunContext
  end(text?: string): Promise<void>
  fail(reason: Error): Promise<void>
}

export function limitedTasks(options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock(1_000)
  const runs: StartedRun[] = []
  const errors: unknown[] = []
  const manager = new AsyncTaskManager({
    maxAsyncTasks: 1,
    clock,
    graceMs: 100,
    onError: (error) => errors.push(error),
    ...options,
  })
  const runner: RunFunction = ({ id }, context) =>
    new Promise((resolve, reject) => {
      context.signal.addEventListener('abort', () => resolve({}))
      runs.push({
        id,
        context,
        end: (text = 'done') => {
          resolve({ final_message: text })
          return tick()
        },
        fail: (reason) => {
          reject(reason)
          return tick()
        },
      })
    })
  onTestFinished(() => manager.dispose())
  return {
    manager,
    clock,
    runs,
    runner,
    errors,
    /** Launches a task. Starts its run if a slot is free. */
    launch: async (id: string, input: Partial<LaunchTaskInput> = {}, definition: Partial<RunnerDefinition> = {}) => {
      const record = manager.launch(
        { id, subagentName: 'agent', goalPrompt: `goal of ${id}`, ...input },
        { run: runner, ...definition },
      )
      await tick()
      return record
    },
    /** Lets time pass. Starts the runs that can start then. */
    pass: async (ms: number) => {
      clock.advance(ms)
      await tick()
    },
    started: () => runs.map(({ id }) => id),
  }
}
