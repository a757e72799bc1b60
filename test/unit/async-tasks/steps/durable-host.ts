/** A manager with one durable subagent, which can be killed and taken over. */
import { onTestFinished } from 'vitest'
import {
  AsyncTaskManager,
  type AsyncTaskManagerOptions,
  type RunContext,
  type RunnerDefinition,
} from '../../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../../src/store/index.js'
import { createManualClock, type ManualClock } from '../../../../src/testing/index.js'
import { tick } from '../../../support/limited-tasks.js'

/** What a run does. */
export type Run = (context: RunContext) => Promise<unknown>

export interface DurableOptions extends AsyncTaskManagerOptions {
  readonly definition?: Partial<RunnerDefinition>
  readonly at?: number
}

/** A process that runs `work` as the subagent `agent`. */
export function durableProcess(run: Run, options: DurableOptions = {}, store: MemoryStore = memoryStore()) {
  const { definition, at = 1000, ...given } = options
  const clock: ManualClock = createManualClock(at)
  const errors: unknown[] = []
  const agent: RunnerDefinition = {
    durable: true,
    ...definition,
    run: async (_input, context) => {
      const returned = await run(context)
      return typeof returned === 'object' || returned === undefined
        ? (returned as Record<string, unknown> | undefined)
        : JSON.stringify(returned)
    },
  }
  const manager = new AsyncTaskManager({
    store,
    clock,
    graceMs: 0,
    findRunner: (name) => (name === 'agent' ? agent : () => 'child'),
    onError: (error) => errors.push(error),
    ...given,
  })
  onTestFinished(async () => {
    const disposed = manager.dispose()
    await settle()
    // What does not stop is given up after its grace.
    clock.advance(1)
    await disposed
  })
  return {
    manager,
    store,
    clock,
    errors,
    launch: async (fields = {}) => {
      manager.launch({ id: 'task', subagentName: 'agent', goalPrompt: 'work', ...fields }, agent)
      await settle()
    },
    task: () => manager.getTask('task'),
    rows: () => store.contents().featureStates.filter(({ feature }) => feature === 'steps'),
    /** The next process, on what this one has stored by now. */
    next: async (nextRun: Run = run, more: DurableOptions = {}) => {
      const next = durableProcess(nextRun, { ...options, at: clock.now(), ...more }, store.copy())
      await next.manager.recovered
      await settle()
      return next
    },
  }
}

/** What follows a change has been stored, and has gone on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await tick()
}
