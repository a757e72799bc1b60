/** Tasks whose runs died with their process: they fail, or are run again. */
import { RETRY_REASONS } from '../../../src/protocol/retry-policy.js'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  AsyncTaskManager,
  createAgentTasks,
  type AgentTasksOptions,
  type AsyncTaskManagerOptions,
  type RunContext,
  type Runner,
  type RunnerDefinition,
} from '../../../src/index.js'
import { createTaskTool } from '../../../src/tools/index.js'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'

const hosts: { dispose(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.dispose()))
})

function managerOn(store: Store, options: AsyncTaskManagerOptions = {}): AsyncTaskManager {
  const manager = new AsyncTaskManager({
    store,
    clock: createManualClock(),
    graceMs: 0,
    onError: () => undefined,
    ...options,
  })
  hosts.push(manager)
  return manager
}

const task = (id = 'a') => ({ id, subagentName: 'agent', goalPrompt: 'look into it' })
const given = { id: 'a', subagent: 'agent', goal: 'look into it' }
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A run that ends when it is told to. */
function openRun() {
  const started: { input: unknown; context: RunContext; end: (text: string) => void }[] = []
  const run: Runner = (input, context) =>
    new Promise((resolve) => {
      context.signal.addEventListener('abort', () => resolve({}))
      started.push({ input, context, end: (text) => resolve({ final_message: text }) })
    })
  return { run, started }
}

const policy = { retry: { attempts: 2, on: ['interrupted'] } } as const
const retried = (run: Runner, attempts = 2): RunnerDefinition => ({ run, retry: { ...policy.retry, attempts } })

describe('a run that died with its process', () => {
  it('K7: fails its task with a code, and says what to do', async () => {
    const store = memoryStore()
    managerOn(store).launch(task(), openRun().run)
    await tick()
    const next = managerOn(store.copy())
    expect(await next.recovered).toEqual({ adopted: [], queued: [], retried: [], interrupted: ['a'], uncertain: [] })
    expect(next.getTask('a')).toMatchObject({
      status: 'failed',
      delivery: 'owed',
      errorCode: 'INTERRUPTED',
      error: `The process that ran this task (subagent 'agent', goal "look into it") ended before the task did. Launch it again if its result is still needed.`,
    })
    expect(next.getTask('a')).not.toHaveProperty('attempt')
  })

  it('K7: is run again, with all of its input, as the next attempt, and completes its task', async () => {
    const store = memoryStore()
    const further = { toolWhitelist: ['read'], context: { depth: [1, { of: 'it' }] } }
    managerOn(store).launch({ ...task(), ...further }, openRun().run)
    await tick()
    const { run, started } = openRun()
    const next = managerOn(store.copy(), { findRunner: () => retried(run) })
    expect(await next.recovered).toEqual({ adopted: [], queued: [], retried: ['a'], interrupted: [], uncertain: [] })
    await tick()
    expect(started.map(({ input }) => input)).toEqual([{ ...given, ...further }])
    expect(started[0]?.context.attempt).toBe(2)
    expect(next.getTask('a')).toMatchObject({ status: 'running', attempt: 2 })
    started[0]?.end('found')
    await tick()
    expect(next.getPendingNotifications()).toMatchObject([
      { id: 'a', status: 'completed', attempt: 2, output: { final_message: 'found' } },
    ])
  })

  it('K7: is run as often as its policy says, and not more', async () => {
    let store = memoryStore()
    const attempts: number[] = []
    const run: Runner = (input, context) => {
      attempts.push(context.attempt)
      return openRun().run(input, context)
    }
    managerOn(store).launch(task(), run)
    await tick()
    await tick()
    for (let life = 0; life < 3; life += 1) {
      store = store.copy()
      const manager = managerOn(store, { findRunner: () => retried(run, 3) })
      await manager.recovered
      await tick()
    }
    expect(attempts).toEqual([1, 2, 3])
    expect(store.contents().tasks).toMatchObject([{ status: 'failed', attempt: 3, record: { attempt: 3 } }])
    expect(store.contents().tasks[0]?.record['error']).toContain('This was attempt 3.')
  })

  it('K7: has its next attempt on the disk before it starts, so that each start counts', async () => {
    const store = memoryStore()
    managerOn(store).launch(task(), openRun().run)
    await tick()
    const copy = store.copy()
    let stored: unknown
    const run: Runner = () => {
      stored = copy.contents().tasks
      return {}
    }
    const next = managerOn(copy, { findRunner: () => retried(run) })
    await next.recovered
    await tick()
    expect(stored).toMatchObject([{ status: 'running', attempt: 2 }])
  })

  it('K7: does not start before its next attempt can be stored', async () => {
    const store = memoryStore()
    managerOn(store).launch(task(), openRun().run)
    await tick()
    const copy = store.copy()
    let isBroken = true
    const broken: Store = {
      ...copy,
      write: async (changes) => {
        if (isBroken) throw new StoreError('STORE_READ_ONLY', 'it cannot be written')
        await copy.write(changes)
      },
    }
    const run = vi.fn(() => ({}))
    const errors: unknown[] = []
    const clock = createManualClock()
    const next = managerOn(broken, {
      clock,
      findRunner: () => retried(run),
      onError: (error, { source }) => errors.push([source, (error as StoreError).code]),
    })
    expect(await next.recovered).toMatchObject({ retried: ['a'], interrupted: [] })
    await tick()
    expect(run).not.toHaveBeenCalled()
    expect(next.getTask('a')).toMatchObject({ status: 'running', attempt: 2 })
    expect(errors).toEqual([['store', 'STORE_READ_ONLY']])
    // This attempt does not count: no process has begun it.
    expect(copy.contents().tasks).toMatchObject([{ status: 'running', attempt: 1 }])
    isBroken = false
    clock.advance(100)
    await tick()
    expect(run).toHaveBeenCalledOnce()
    expect(copy.contents().tasks).toMatchObject([{ status: 'completed', attempt: 2 }])
  })

  it('K7: is run again with its whole time limit', async () => {
    const store = memoryStore()
    const first = createManualClock()
    managerOn(store, { clock: first }).launch({ ...task(), timeoutMs: 1000 }, openRun().run)
    await tick()
    const clock = createManualClock()
    clock.advance(900)
    const copy = store.copy()
    const next = managerOn(copy, { clock, findRunner: () => retried(openRun().run) })
    await next.stored()
    expect(copy.contents().tasks[0]?.deadlineAt).toBe(clock.now() + 1000)
    await tick()
    clock.advance(999)
    expect(next.getTask('a')?.status).toBe('running')
    clock.advance(1)
    await tick()
    expect(next.getTask('a')?.error).toMatch(/timed out/)
  })

  it('K7: is not run again when its time limit had passed', async () => {
    const store = memoryStore()
    const clock = createManualClock()
    const manager = managerOn(store, { clock, graceMs: 5000 })
    manager.launch({ ...task(), timeoutMs: 1000 }, () => new Promise(() => undefined))
    await tick()
    clock.advance(1000)
    await tick()
    const run = vi.fn(() => ({}))
    const next = managerOn(store.copy(), { findRunner: () => retried(run) })
    expect(await next.recovered).toMatchObject({ interrupted: ['a'] })
    expect(next.getTask('a')).toMatchObject({ errorCode: 'INTERRUPTED' })
    expect(next.getTask('a')?.error).toMatch(/^Task timed out: it did not end within its limit of 1 s\. The process/)
    expect(run).not.toHaveBeenCalled()
    clock.advance(5000)
  })

  it('K7: starts anew: without the questions and the progress of the last attempt', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    const { run, started } = openRun()
    manager.launch(task(), run)
    await tick()
    started[0]?.context.report(0.5)
    void started[0]?.context.ask('which one?').catch(() => undefined)
    manager.releaseOwner('main', { to: 'heir' })
    await tick()
    expect(store.contents().tasks[0]?.record).toMatchObject({ owner: 'heir', progress: { progress: 0.5 } })
    const next = managerOn(store.copy(), { findRunner: () => retried(openRun().run) })
    expect(next.getTask('a')).not.toHaveProperty('questions')
    expect(next.getTask('a')).not.toHaveProperty('progress')
    await tick()
  })

  it('K7: what an earlier attempt reports changes nothing', async () => {
    const store = memoryStore()
    const old = openRun()
    managerOn(store, { onError: () => undefined }).launch(task(), old.run)
    await tick()
    const young = openRun()
    const copy = store.copy()
    const next = managerOn(copy, { findRunner: () => retried(young.run) })
    await next.recovered
    await tick()
    const before = copy.contents()
    const { context, end } = old.started[0]!
    context.report(0.9)
    context.append('late')
    void context.ask('still there?').catch(() => undefined)
    end('too late')
    await tick()
    expect(next.getTask('a')).toMatchObject({ status: 'running', attempt: 2 })
    expect(next.getTask('a')).not.toHaveProperty('progress')
    expect(next.getTask('a')).not.toHaveProperty('questions')
    expect(next.readOutput('a')?.text).toBe('')
    expect(copy.contents()).toEqual(before)
    young.started[0]?.end('in time')
    await tick()
    expect(next.getTask('a')?.output).toEqual({ final_message: 'in time' })
  })

  it('K7: can be cancelled in its next attempt, and before that has started', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.launch(task('a'), openRun().run)
    manager.launch(task('b'), openRun().run)
    await tick()
    const { run, started } = openRun()
    const next = managerOn(store.copy(), { findRunner: () => retried(run) })
    expect(next.cancelTask('a')).toBe(true)
    await tick()
    expect(started).toHaveLength(1)
    expect(next.cancelTask('b')).toBe(true)
    await tick()
    expect(started[0]?.context.signal.aborted).toBe(true)
    expect(next.getAllTasks().map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
  })
})

describe('a task is not run again', () => {
  async function fateOf(
    options: AsyncTaskManagerOptions,
    launch = (manager: AsyncTaskManager): void => {
      manager.launch(task(), openRun().run)
    },
  ) {
    const store = memoryStore()
    launch(managerOn(store))
    await tick()
    const errors: { readonly error: unknown; readonly source: string }[] = []
    const next = managerOn(store.copy(), { onError: (error, { source }) => errors.push({ error, source }), ...options })
    const { interrupted } = await next.recovered
    return { interrupted, errors }
  }

  it('K7: when its subagent has no policy, or is unknown', async () => {
    expect(await fateOf({ findRunner: () => openRun().run })).toMatchObject({ interrupted: ['a'], errors: [] })
    expect(await fateOf({ findRunner: () => undefined })).toMatchObject({ interrupted: ['a'], errors: [] })
    expect(
      await fateOf({ findRunner: () => ({ run: openRun().run, retry: { attempts: 9, on: ['timeout'] } }) }),
    ).toMatchObject({
      interrupted: ['a'],
      errors: [],
    })
  })

  it('K7: when its caller runs it', async () => {
    const findRunner = vi.fn(() => retried(openRun().run))
    const found = await fateOf({ findRunner }, (manager) => void manager.registerTask(task()))
    expect(found).toMatchObject({ interrupted: ['a'] })
    expect(findRunner).not.toHaveBeenCalled()
  })

  it('K7: when its runner knows more than its input', async () => {
    const bound = { run: openRun().run, isBound: true }
    const found = await fateOf(
      { findRunner: () => retried(openRun().run) },
      (manager) => void manager.launch(task(), bound),
    )
    expect(found).toMatchObject({ interrupted: ['a'] })
  })

  it('K7: when its input is too large to be stored', async () => {
    const params = { text: 'x'.repeat(1024 * 1024) }
    const found = await fateOf({ findRunner: () => retried(openRun().run) }, (manager) => {
      manager.launch({ ...task(), context: params }, openRun().run)
    })
    expect(found).toMatchObject({ interrupted: ['a'] })
  })

  it('K7: when findRunner throws, or returns something else; that is reported', async () => {
    const broken = () => {
      throw new Error('no subagents today')
    }
    expect(await fateOf({ findRunner: broken })).toMatchObject({
      interrupted: ['a'],
      errors: [{ source: 'runner', error: { message: 'no subagents today' } }],
    })
    const odd = { run: openRun().run, retry: { attempts: 2, on: ['always'] } } as unknown as RunnerDefinition
    const { interrupted, errors } = await fateOf({ findRunner: () => odd })
    expect(interrupted).toEqual(['a'])
    expect(errors[0]?.error).toBeInstanceOf(InvalidInputError)
    expect((errors[0]?.error as Error).message).toBe(
      `findRunner("agent").retry.on[0]: got "always", expected ${RETRY_REASONS.map((reason) => `'${reason}'`).join(' or ')}.`,
    )
    const text = await fateOf({ findRunner: () => 'agent' as unknown as Runner })
    expect((text.errors[0]?.error as Error).message).toMatch(
      /^findRunner\("agent"\): got "agent", expected a function, or/,
    )
  })

  it('K7: with further input that has too many levels, which is refused at its launch', () => {
    let deep: object = {}
    for (let level = 0; level < 200; level += 1) deep = { deep }
    const manager = managerOn(memoryStore())
    expect(() => manager.launch({ ...task(), context: { deep } }, openRun().run)).toThrow(InvalidInputError)
    expect(manager.getAllTasks()).toEqual([])
  })
})

it('K7: is in the store with the working directory of its request', async () => {
  const store = memoryStore()
  const manager = managerOn(store)
  const tool = createTaskTool({
    getAsyncTaskManager: () => manager,
    resolveSubagent: () => openRun().run,
    cwd: '/project',
  })
  await tool.execute({ subagent_name: 'agent', goal_prompt: 'look', async: true })
  expect(store.contents().tasks[0]?.run).toMatchObject({ params: { cwd: '/project' } })
})

describe('a subagent of createAgentTasks', () => {
  function tasksOn(store: MemoryStore, options: AgentTasksOptions) {
    const tasks = createAgentTasks({
      store,
      clock: createManualClock(),
      graceMs: 0,
      onError: () => undefined,
      ...options,
    })
    hosts.push(tasks)
    return tasks
  }

  it('K7: with a policy is run again with the request of the model', async () => {
    const store = memoryStore()
    const research = { run: openRun().run as SubagentRunner, ...policy }
    const request = {
      subagent_name: 'research',
      goal_prompt: 'find the cause',
      behaviour_prompts: ['be brief'],
      tool_whitelist: ['read'],
      expected_outputs: { cause: 'in a word' },
      context: { file: 'a.ts' },
    }
    const { metadata } = await tasksOn(store, { subagents: { research } }).tools.task.execute({
      ...request,
      async: true,
    })
    const id = String(metadata?.['agentId'])
    const requests: unknown[] = []
    const next = tasksOn(store.copy(), {
      subagents: { research: { ...research, run: (given) => ({ given: requests.push(given) }) } },
    })
    expect(await next.recovered).toMatchObject({ retried: [id] })
    await tick()
    expect(requests).toEqual([
      {
        id,
        subagent: 'research',
        goal: 'find the cause',
        behaviourPrompts: ['be brief'],
        toolWhitelist: ['read'],
        expectedOutputs: { cause: 'in a word' },
        context: { file: 'a.ts' },
      },
    ])
  })

  it.each([
    ['attempts', { attempts: 0, on: ['interrupted'] }, 'subagents.research.retry.attempts'],
    ['attempts', { attempts: 1.5, on: ['interrupted'] }, 'subagents.research.retry.attempts'],
    ['attempts', { on: ['interrupted'] }, 'subagents.research.retry.attempts'],
    ['on', { attempts: 2 }, 'options.subagents.research.retry.on'],
    ['on', { attempts: 2, on: ['never'] }, 'options.subagents.research.retry.on[0]'],
    ['a name', { attempts: 2, on: ['timeout'], backoff: 5 }, 'options.subagents.research.retry.backoff'],
    ['an object', 3, 'options.subagents.research.retry'],
  ])('K7: is refused with a wrong policy: %s of %j', (_what, retry, field) => {
    const research = { run: () => ({}), retry } as never
    const refused = (): unknown => createAgentTasks({ subagents: { research } })
    expect(refused).toThrow(field.startsWith('options') ? InvalidInputError : InvalidSettingError)
    expect(refused).toThrow(`${field}: got`)
  })
})
