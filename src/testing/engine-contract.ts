/** `engineContract`: test cases for anything that runs tasks, in this process or elsewhere. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { RunContext, RunFunction, RunInput, Runner } from '../engine/runner.js'
import type { AsyncTaskInfo, OutputObject, SettledTaskInfo } from '../../machines/records.js'
import { endedAs } from '../../machines/task-status.js'
import { casesOf, END_MS, expectEqual, type ContractCase } from './contract-cases.js'

/** What a case of `engineContract` tests. */
export interface EngineSubject {
  /** A manager that runs one task at a time. The other tasks wait in the manager, or in the service that runs them. */
  readonly manager: AsyncTaskManager
  /** Returns a runner that executes this function, wherever it runs. Called once for each case. */
  readonly runnerOf: (run: RunFunction) => Runner | Promise<Runner>
  /** Stops and restarts the service through which a task reaches its run, such as a job broker. Undefined if there is no such service. */
  readonly restart?: (() => Promise<void>) | undefined
  /** Disposes the manager and all that belongs to it. Called after the case. */
  readonly dispose: () => Promise<void>
}

/**
 * Test cases for a runner or an engine of your own: `for (const { name, run } of engineContract(makeSubject)) test(name, run)`.
 * @param makeSubject creates the subject of each case
 * @returns the cases, which work with any test runner
 */
export function engineContract(makeSubject: () => EngineSubject | Promise<EngineSubject>): readonly ContractCase[] {
  return casesOf(CASES, makeSubject)
}

/** A run function that a case controls. Each call waits until the case ends it. */
class Work {
  readonly calls: {
    readonly input: RunInput
    readonly context: RunContext
    readonly end: (output: OutputObject) => void
  }[] = []
  readonly #listeners = new Set<() => void>()

  /** @param isDeaf whether a call goes on when its signal aborts */
  constructor(private readonly isDeaf = false) {}

  readonly run: RunFunction = (input, context) =>
    new Promise<OutputObject>((resolve, reject) => {
      const { signal } = context
      const stop = (): void => reject(signal.reason as Error)
      const end = (output: OutputObject): void => {
        signal.removeEventListener('abort', stop)
        resolve(output)
      }
      if (!this.isDeaf) signal.addEventListener('abort', stop, { once: true })
      this.calls.push({ input, context, end })
      for (const listener of [...this.#listeners]) listener()
    })

  /** Resolves with the call of this number, counted from 1, as soon as that call has begun. */
  call(number: number): Promise<Work['calls'][number]> {
    return new Promise((resolve) => {
      const look = (): void => {
        const call = this.calls[number - 1]
        if (call === undefined) return
        this.#listeners.delete(look)
        resolve(call)
      }
      this.#listeners.add(look)
      look()
    })
  }
}

const CASES: Readonly<Record<string, (subject: EngineSubject) => Promise<void>>> = {
  'ends a task once, with what its run returns': async ({ manager, runnerOf }) => {
    const ends: string[] = []
    manager.onTaskCompleted(({ id }) => ends.push(id))
    const id = launch(manager, await runnerOf((input) => ({ goal: input.goal })))
    expectEqual((await settled(manager, id)).output, { goal: 'goal' }, 'the output')
    expectEqual(ends, [id], 'the ends that were notified')
  },

  'ends a task with what its run throws': async ({ manager, runnerOf }) => {
    const runner = await runnerOf(() => Promise.reject(Object.assign(new Error('broken'), { code: 'BROKEN' })))
    const task = await settled(manager, launch(manager, runner))
    const code = endedAs(task, 'failed') ? task.errorCode : undefined
    expectEqual([task.status, task.error, code], ['failed', 'broken', 'BROKEN'], 'the failure')
  },

  'ends a task once, and ignores what comes after its end': async ({ manager, runnerOf }) => {
    const work = new Work(true)
    const id = launch(manager, await runnerOf(work.run))
    const { context, end } = await work.call(1)
    end({ final_message: 'first' })
    const task = await settled(manager, id)
    const ends: AsyncTaskInfo[] = []
    manager.onTaskCancelled((ended) => ends.push(ended))
    manager.onTaskFailed((ended) => ends.push(ended))
    const late = [manager.cancelTask(id), manager.failTask(id, 'late'), manager.completeTask(id, {})]
    context.append('late')
    expectEqual([late, ends], [[false, false, false], []], 'what a later end does')
    const { status, output } = manager.getTask(id) ?? task
    expectEqual([status, output], ['completed', { final_message: 'first' }], 'the end')
  },

  'starts waiting tasks in the order of their launch, even after a restart of the job service': async (subject) => {
    const { manager, runnerOf, restart } = subject
    const work = new Work()
    const runner = await runnerOf(work.run)
    const goals = ['first', 'second', 'third', 'fourth']
    const ids = goals.map((goal) => launch(manager, runner, goal))
    for (let number = 1; number <= goals.length; number += 1) {
      const { end } = await work.call(number)
      if (number === 2) await restart?.()
      end({})
    }
    for (const id of ids) await settled(manager, id)
    const started = work.calls.map(({ input }) => input.goal)
    expectEqual(started, goals, 'the goals of the runs')
  },

  'never starts a task that is cancelled while it waits': async ({ manager, runnerOf }) => {
    const work = new Work()
    const runner = await runnerOf(work.run)
    const first = launch(manager, runner, 'first')
    const { end } = await work.call(1)
    const waiting = launch(manager, runner, 'waiting')
    const last = launch(manager, runner, 'last')
    manager.cancelTask(waiting)
    end({})
    ;(await work.call(2)).end({})
    await settled(manager, first)
    await settled(manager, last)
    const goals = work.calls.map(({ input }) => input.goal)
    expectEqual(goals, ['first', 'last'], 'the goals of the runs')
  },

  'stops the run of a cancelled task, and runs the next task': async ({ manager, runnerOf }) => {
    const work = new Work()
    const runner = await runnerOf(work.run)
    const id = launch(manager, runner, 'first')
    const { context } = await work.call(1)
    manager.cancelTask(id, { reason: 'not needed' })
    const next = launch(manager, runner, 'next')
    ;(await work.call(2)).end({})
    expectEqual((await settled(manager, next)).status, 'completed', 'the end of the next task')
    expectEqual(context.signal.aborted, true, 'the signal of the cancelled run')
    expectEqual(manager.getTask(id)?.status ?? 'cancelled', 'cancelled', 'the status of the cancelled task')
  },

  'ignores the output and the result of a run whose task has ended': async ({ manager, runnerOf }) => {
    const work = new Work(true)
    const runner = await runnerOf(work.run)
    const id = launch(manager, runner)
    const ends: AsyncTaskInfo[] = []
    manager.onTaskCompleted((task) => ends.push(task))
    const { context, end } = await work.call(1)
    manager.cancelTask(id)
    context.append('late')
    context.report(1)
    end({ final_message: 'late' })
    const next = launch(manager, runner, 'next')
    ;(await work.call(2)).end({})
    await settled(manager, next)
    expectEqual(
      ends.map((task) => task.id),
      [next],
      'the tasks that have completed',
    )
  },

  'ignores the output and the progress of an attempt that is over': async ({ manager, runnerOf }) => {
    const attempts: RunContext[] = []
    const run = await runnerOf((_input, context) => {
      attempts.push(context)
      context.append(`attempt ${context.attempt}\n`)
      if (context.attempt === 1) throw Object.assign(new Error('gone'), { code: 'INTERRUPTED' })
      attempts[0]?.append('stale\n')
      attempts[0]?.report(99)
      return { attempt: context.attempt }
    })
    const retry = { attempts: 2, on: ['interrupted'], backoff: { initialMs: 0 } } as const
    const text: string[] = []
    const id = launch(manager, { run, retry })
    manager.output$(id).subscribe((event) => text.push(event.text))
    const { output, progress } = await settled(manager, id)
    expectEqual([output, progress], [{ attempt: 2 }, undefined], 'the output and the progress')
    expectEqual(text.join('').includes('stale'), false, 'whether the output has what the first attempt wrote late')
  },

  'runs a task with the id of a task whose record was pruned': async ({ manager, runnerOf }) => {
    let runs = 0
    let launched = 0
    const runner = await runnerOf(() => ({ run: (runs += 1) }))
    const expectNext = async (id?: string): Promise<void> => {
      const { output } = await settled(manager, launch(manager, runner, 'goal', id))
      expectEqual(output, { run: (launched += 1) }, 'the output')
    }
    await expectNext('again')
    while (manager.getTask('again') !== undefined) await expectNext()
    await expectNext('again')
  },

  'continues after a restart of the job service': async ({ manager, runnerOf, restart }) => {
    if (restart === undefined) return
    const work = new Work()
    const runner = await runnerOf(work.run)
    const running = launch(manager, runner, 'running')
    const { context, end } = await work.call(1)
    context.append('before\n')
    const waiting = launch(manager, runner, 'waiting')
    await restart()
    context.append('after\n')
    end({ final_message: 'ended' })
    ;(await work.call(2)).end({ final_message: 'ended, too' })
    expectEqual((await settled(manager, running)).output, { final_message: 'ended' }, 'the output of the task that ran')
    expectEqual(
      (await settled(manager, waiting)).output,
      { final_message: 'ended, too' },
      'the output of the task that waited',
    )
    expectEqual(work.calls.length, 2, 'how many runs there were')
  },
}

function launch(manager: AsyncTaskManager, runner: Runner, goalPrompt = 'goal', id?: string): string {
  return manager.launch({ subagentName: 'contract', goalPrompt, whenFull: 'queue', ...omitUndefined({ id }) }, runner)
    .id
}

async function settled(manager: AsyncTaskManager, id: string): Promise<SettledTaskInfo> {
  const { settled: ended } = await manager.waitFor([id], { timeoutMs: END_MS })
  const [task] = ended
  if (task === undefined) throw new Error(`task ${id} has not ended within ${END_MS} ms`)
  return task
}
