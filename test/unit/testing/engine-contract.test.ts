/** The contract of what runs tasks: it holds in this process, and finds what is broken. test/cluster/engine-contract.test.ts has it on workers. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import type { RunFunction } from '../../../src/engine/runner.js'
import { engineContract, type EngineSubject } from '../../../src/testing/engine-contract.js'

function inProcess(runnerOf: EngineSubject['runnerOf'] = (run) => run): EngineSubject {
  const manager = new AsyncTaskManager({ maxAsyncTasks: 1, graceMs: 100, onError: () => undefined })
  return { manager, runnerOf, dispose: () => manager.dispose() }
}

describe('in this process', () => {
  for (const { name, run } of engineContract(() => inProcess())) it(name, run)
})

describe('what is broken is found', () => {
  const broken: Readonly<Record<string, (run: RunFunction) => RunFunction>> = {
    'ends a task once, with what its run returns': () => () => ({}),
    'ends a task with what its run throws': () => () => Promise.reject(new Error('another')),
    'stops the run of a cancelled task, and runs the next task': (run) => (input, context) =>
      run(input, { ...context, signal: new AbortController().signal }),
    'ignores the output and the progress of an attempt that is over': (run) => (input, context) =>
      run(input, { ...context, attempt: 2 }),
    'runs a task with the id of a task whose record was pruned': (run) => {
      let first: ReturnType<RunFunction> | undefined
      return (input, context) => (first ??= run(input, context))
    },
  }
  it.each(Object.keys(broken))('%s', async (name) => {
    const runnerOf = broken[name] as (run: RunFunction) => RunFunction
    const found = engineContract(() => inProcess(runnerOf)).find((one) => one.name === name)
    await expect(found?.run()).rejects.toThrow(/got .*, expected/)
  })
})
