/** What the tests of tools and commands share: a manager with a manual clock and predictable ids, and runs that the test ends. */
import { vi } from 'vitest'
import type { OutputObject } from '../../../machines/records.js'
import type { AsyncTaskManagerOptions } from '../../../src/async-tasks/manager-options.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import type { RunContext, RunFunction } from '../../../src/engine/runner.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

/** A manager whose clock starts at 2024-01-01T00:00:00Z and whose ids end in 1, 2, 3 … */
export function setUpHost(options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock(Date.UTC(2024, 0, 1))
  const onError = vi.fn()
  let last = 0
  const manager = new AsyncTaskManager({ clock, onError, createId: (prefix) => `${prefix}-${++last}`, ...options })
  const register = (id: string, more: { owner?: string; goalPrompt?: string; subagentName?: string } = {}) =>
    manager.registerTask({
      id,
      subagentName: 'helper',
      goalPrompt: 'do it',
      abortController: new AbortController(),
      ...more,
    })
  return { clock, manager, onError, register, getAsyncTaskManager: () => manager }
}

/** A promise with its resolve and reject functions. */
export function deferred<T>() {
  let resolve: (value: T) => void = () => undefined
  let reject: (reason: unknown) => void = () => undefined
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

/** A run that the test ends; it ignores aborts. */
export function controlledRun<Input>() {
  const started = deferred<{ input: Input; context: RunContext }>()
  const end = deferred<OutputObject>()
  const run = vi.fn<RunFunction<Input>>((input, context) => {
    started.resolve({ input, context })
    return end.promise
  })
  return { run, started: started.promise, finish: end.resolve, fail: end.reject }
}

/** A subagent whose runs the test ends, in the order in which they start. */
export function controlledSubagent() {
  const runs: ReturnType<typeof controlledRun>[] = []
  const subagent = (input: unknown, context: RunContext) => {
    const run = controlledRun()
    runs.push(run)
    return run.run(input, context)
  }
  return { subagent, runs }
}

/** Waits until all settled promises have run their callbacks. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}
