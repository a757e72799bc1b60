/** A host whose tools run in the background, and a tool that ends when the test says so. */
import { expect, onTestFinished, vi } from 'vitest'
import { registryOf } from '../../../../src/async-tasks/manager.js'
import { taskWatchers } from '../../../../src/async-tasks/task-watchers.js'
import { createAgentTasks, type AgentTasksOptions } from '../../../../src/index.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { deferred } from '../../tools/tool-host.js'

/** Lets everything happen that needs no time. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** One run of a tool. */
export type ToolRun = ReturnType<typeof deferred<unknown>> & { readonly input: unknown; readonly signal: AbortSignal }

/** What tools call: it ends when the test settles its promise, or is aborted. */
function createWork() {
  const runs: ToolRun[] = []
  const work = (input: unknown, signal: AbortSignal | undefined): Promise<unknown> => {
    const run = { ...deferred<unknown>(), input, signal: signal! }
    runs.push(run)
    signal?.addEventListener('abort', () => run.reject(signal.reason as Error))
    return run.promise
  }
  return { runs, work }
}

export function setUp(options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const onError = vi.fn()
  const tasks = createAgentTasks({ clock, onError, graceMs: 0, ...options })
  const { manager } = tasks
  const registry = registryOf(manager)
  const watchers = registry.use(taskWatchers)
  const [added, removed] = [vi.spyOn(watchers, 'add'), vi.spyOn(watchers, 'remove')]
  onTestFinished(async () => {
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })
  return {
    ...createWork(),
    tasks,
    manager,
    clock,
    onError,
    /** The last task. */
    last: () => manager.getAllTasks().at(-1)!,
    /** What is delivered to the owner, as the next turn of its agent has it. */
    delivered: () => {
      const { reminder } = tasks.beforeTurn()
      tasks.afterTurn({ accepted: true })
      return reminder?.text ?? ''
    },
    /** What calls leave behind: watchers that were not removed, slots and leases. */
    left: () => ({
      watchers: added.mock.calls.filter((args) => !removed.mock.calls.some((other) => args[1] === other[1])).length,
      task: registry.pools.task.inUse,
      foreground: registry.pools.foreground.inUse,
      leased: manager.actor.getSnapshot().leased,
    }),
  }
}

export const nothingLeft = { watchers: 0, task: 0, foreground: 0, leased: 0 }
