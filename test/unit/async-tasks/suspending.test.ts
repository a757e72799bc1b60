/** What `dispose()` of a manager with a store does to each kind of task, and what the next process finds. */
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  AgentTasksError,
  AsyncTaskManager,
  createAgentTasks,
  type AsyncTaskManagerOptions,
  type RunContext,
  type RunFunction,
  type RunnerDefinition,
} from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { durableProcess, settle } from './steps/durable-host.js'
import { DisposedError } from '../../../src/errors.js'
import { StoreInUseError } from '../../../src/store/store-errors.js'

const interrupted = { attempts: 2, on: ['interrupted'] } as const
const never = (): Promise<never> => new Promise(() => undefined)

/** The next process on the same store. */
async function nextProcess(store: MemoryStore, definition: RunnerDefinition, options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock(9_000)
  const manager = new AsyncTaskManager({ store, clock, graceMs: 0, findRunner: () => definition, ...options })
  onTestFinished(() => manager.dispose())
  const recovery = await manager.recovered
  await tick()
  return { manager, clock, recovery, row: (id: string) => store.contents().tasks.find((row) => row.id === id) }
}

const statuses = (store: MemoryStore) => store.contents().tasks.map(({ id, status }) => `${id} ${status}`)

describe('a manager with a store that is disposed', () => {
  it('K13: leaves each task as a crash would, and reports the end of no task', async () => {
    const store = memoryStore()
    const { manager, launch } = limitedTasks({ store, whenFull: 'queue' })
    const seen: unknown[] = []
    manager.transitions$.subscribe({ next: ({ to }) => seen.push(to), complete: () => seen.push('complete') })
    await launch('repeated', { retry: interrupted })
    await launch('second')
    await launch('third')
    const before = seen.splice(0).length
    expect(before).toBeGreaterThan(0)
    await manager.dispose()
    expect(seen).toEqual(['complete'])
    expect(statuses(store)).toEqual(['repeated running', 'second queued', 'third queued'])
    expect(store.contents().tasks.map(({ delivery }) => delivery)).toEqual(['none', 'none', 'none'])
    const { recovery } = await nextProcess(store, { run: untilAborted }, { whenFull: 'queue', maxAsyncTasks: 1 })
    expect(recovery).toMatchObject({ retried: ['repeated'], queued: ['second', 'third'], interrupted: [] })
  })

  it('K13: completes a task whose run returns within its grace, and the next process delivers it once', async () => {
    const store = memoryStore()
    const { manager, launch, runs, pass } = limitedTasks({ store, maxAsyncTasks: 3 })
    const run: RunFunction = (_input, { signal }) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          // The run needs a while to write down what it has.
          void pass(50).then(() => resolve({ final_message: 'all but one' }))
        }),
      )
    await launch('quick', {}, { run })
    await launch('empty')
    await launch('late', { graceMs: 10 }, { run: never })
    const waits = manager.waitFor(['quick', 'empty', 'late'])
    const disposed = manager.dispose()
    await pass(0)
    await pass(60)
    await disposed
    expect(runs).toHaveLength(1)
    expect(await waits).toMatchObject({ settled: [], pending: [{ id: 'quick' }, { id: 'empty' }, { id: 'late' }] })
    const { manager: next, recovery } = await nextProcess(store, { run: untilAborted })
    expect(recovery).toMatchObject({ interrupted: ['empty', 'late'], uncertain: [] })
    expect(next.getPendingNotifications().map(({ id, status }) => `${id} ${status}`)).toEqual([
      'quick completed',
      'empty failed',
      'late failed',
    ])
    expect(next.getTask('quick')).toMatchObject({ output: { final_message: 'all but one' } })
    expect(next.getTask('quick')).not.toHaveProperty('isRepeat')
  })

  it('K13, F10: counts the time and the usage of a run that completes within its grace', async () => {
    const store = memoryStore()
    const { manager, launch, pass } = limitedTasks({ store })
    const run: RunFunction = (_input, context) =>
      new Promise((resolve) =>
        context.signal.addEventListener('abort', () => {
          void pass(50).then(() => {
            context.spend({ tokens: 7 })
            resolve({ final_message: 'all but one' })
          })
        }),
      )
    await launch('a', { budget: { seconds: 60, tokens: 100 } }, { run })
    await pass(1000)
    const disposed = manager.dispose()
    await pass(0)
    await pass(60)
    await disposed
    const { manager: next } = await nextProcess(store, { run: untilAborted })
    const spent = { tokens: 7, seconds: expect.closeTo(1.05, 1) as number }
    expect([next.getTask('a')?.status, next.getTask('a')?.spent, next.spent()]).toEqual(['completed', spent, spent])
  })

  it('K13: a polite stop uses up no attempt, and five in a row fail the task', async () => {
    const store = memoryStore()
    const definition = { run: untilAborted, retry: interrupted }
    const { manager, launch } = limitedTasks({ store })
    await launch('a', {}, definition)
    await manager.dispose()
    const attempts: unknown[] = []
    for (let stop = 1; stop <= 5; stop += 1) {
      const { manager: next } = await nextProcess(store, definition)
      attempts.push([next.getTask('a')?.status, next.getTask('a')?.attempt])
      if (stop === 5) {
        expect(next.getTask('a')).toMatchObject({ errorCode: 'INTERRUPTED' })
        expect(next.getTask('a')?.error).toContain('It was interrupted 5 times in a row')
      }
      await next.dispose()
    }
    expect(attempts).toEqual([...Array.from({ length: 4 }, () => ['running', undefined]), ['failed', undefined]])
  })

  it('K13: a crash between polite stops uses up an attempt and ends their row', async () => {
    const store = memoryStore()
    const definition = { run: untilAborted, retry: { attempts: 3, on: ['interrupted'] as const } }
    const { manager, launch } = limitedTasks({ store })
    await launch('a', {}, definition)
    await manager.dispose()
    const { row, manager: second } = await nextProcess(store, definition)
    expect(row('a')?.run).toMatchObject({ suspensions: 1 })
    const crashed = store.copy()
    const { row: after, manager: third } = await nextProcess(crashed, definition)
    expect(after('a')).toMatchObject({ attempt: 2 })
    expect(after('a')?.run).not.toHaveProperty('suspensions')
    await Promise.all([second.dispose(), third.dispose()])
  })

  it('K13: a stop before the next run has begun keeps the count of the stops before it', async () => {
    const store = memoryStore()
    const definition = { run: untilAborted, retry: interrupted }
    const { manager, launch } = limitedTasks({ store })
    await launch('a', {}, definition)
    await manager.dispose()
    const second = new AsyncTaskManager({ store, clock: createManualClock(5_000), findRunner: () => definition })
    await second.dispose()
    expect(store.contents().tasks[0]?.run).toMatchObject({ hasNotBegun: true, suspensions: 1 })
    const { manager: third, row } = await nextProcess(store, definition)
    expect(row('a')?.run).toMatchObject({ suspensions: 1 })
    await third.dispose()
    expect(row('a')?.run).toMatchObject({ suspended: 2 })
  })

  it('K13: stops of an earlier attempt do not count for the next one', async () => {
    const store = memoryStore()
    const definition: RunnerDefinition = {
      run: async (input, context) => {
        if (context.attempt === 1 && isFailing) throw new AgentTasksError('INTERRUPTED', 'cut off')
        return untilAborted(input, context)
      },
      retry: { attempts: 3, on: ['interrupted'], backoff: { initialMs: 0 } },
    }
    let isFailing = false
    const { manager, launch } = limitedTasks({ store })
    await launch('a', {}, definition)
    await manager.dispose()
    isFailing = true
    const { manager: next, clock, row } = await nextProcess(store, definition)
    clock.advance(0)
    await tick()
    await next.stored()
    expect(row('a')).toMatchObject({ status: 'running', attempt: 2 })
    expect(row('a')?.run).not.toHaveProperty('suspensions')
  })

  it.each([true, false])(
    'K13: a stop of the process of a run elsewhere uses up no attempt either, and five in a row fail the task (store: %s)',
    async (isStored) => {
      const store = memoryStore()
      const { manager, launch, runs, pass } = limitedTasks(isStored ? { store } : {})
      const run: RunFunction = (_input, context) => new Promise((_, reject) => stops.push({ context, reject }))
      const stops: { context: RunContext; reject: (reason: Error) => void }[] = []
      await launch('a', {}, { run, retry: interrupted, survivesHost: true })
      const stopLast = async (wasSuspended: boolean): Promise<void> => {
        stops.at(-1)?.reject(Object.assign(new Error('It was stopped.'), { code: 'INTERRUPTED', wasSuspended }))
        await pass(0)
        await pass(60_000)
      }
      for (let stop = 1; stop <= 2; stop += 1) await stopLast(true)
      expect(manager.getTask('a')).not.toHaveProperty('attempts')
      // A death of the process uses up an attempt, and the count of stops begins again.
      await stopLast(false)
      for (let stop = 1; stop <= 4; stop += 1) await stopLast(true)
      expect(manager.getTask('a')).toMatchObject({ status: 'running', attempt: 2 })
      expect(stops.map(({ context }) => context.attempt)).toEqual([1, 1, 1, 2, 2, 2, 2, 2])
      if (isStored) {
        // Each run has a name of its own, although the number of the attempt is the same.
        expect(new Set(stops.map(({ context }) => context.durability?.key)).size).toBe(7)
        expect(stops.map(({ context }) => context.durability?.isRepeated)).toEqual([
          false,
          true,
          true,
          false,
          true,
          true,
          true,
          true,
        ])
      }
      await stopLast(true)
      expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED', attempt: 2 })
      expect(manager.getTask('a')?.error).toContain('It was stopped. It was interrupted 5 times in a row')
      expect([runs, stops]).toEqual([[], expect.objectContaining({ length: 8 })])
    },
  )

  it('K13: the next host goes on with the count of stops of a run elsewhere', async () => {
    const store = memoryStore()
    const stopped = Object.assign(new Error('It was stopped.'), { code: 'INTERRUPTED', wasSuspended: true })
    const { launch, runs, pass } = limitedTasks({ store })
    await launch('a', {}, { retry: interrupted, survivesHost: true })
    for (let stop = 1; stop <= 3; stop += 1) {
      await runs.at(-1)?.fail(stopped)
      await pass(0)
    }
    const seen: (boolean | undefined)[] = []
    const run: RunFunction = (_input, { durability }) => {
      seen.push(durability?.isResumed)
      return Promise.reject(stopped)
    }
    const { manager, clock } = await nextProcess(store.copy(), { run, retry: interrupted, survivesHost: true })
    for (let turn = 0; turn < 3; turn += 1) {
      clock.advance(0)
      await tick()
    }
    expect(seen).toEqual([true, false])
    expect(manager.getTask('a')?.error).toContain('It was interrupted 5 times in a row')
  })

  it('K13: a run that had not begun is the first attempt of the next process, whatever its retry says', async () => {
    const store = memoryStore()
    const began: string[] = []
    const definition: RunnerDefinition = {
      run: (input, context) => {
        began.push(`${input.id} ${context.attempt}`)
        return untilAborted(input, context)
      },
    }
    const { manager } = limitedTasks({ store, maxAsyncTasks: 2 })
    const input = { subagentName: 'agent', goalPrompt: 'goal' }
    for (const id of ['a', 'b']) manager.launch({ id, ...input }, definition)
    await manager.dispose()
    expect(began).toEqual([])
    const { recovery, row } = await nextProcess(store, definition, { maxAsyncTasks: 2 })
    expect(recovery).toMatchObject({ retried: ['a', 'b'], interrupted: [] })
    expect(began).toEqual(['a 1', 'b 1'])
    expect(row('b')).toMatchObject({ status: 'running', attempt: 1 })
    expect(row('b')?.run).not.toHaveProperty('hasNotBegun')
  })

  it('K13: nothing can end or change a task any more, also not its controller', async () => {
    const store = memoryStore()
    const { manager, launch } = limitedTasks({ store, maxAsyncTasks: 2 })
    const abortController = new AbortController()
    await launch('a', { abortController })
    manager.registerTask({ id: 'own', subagentName: 'host', goalPrompt: 'goal' })
    await manager.stored()
    const disposed = manager.dispose()
    expect(abortController.signal.reason).toMatchObject({ name: 'AbortError', code: 'SUSPENDED' })
    abortController.abort()
    expect(manager.cancelTask('a')).toBe(false)
    expect(manager.cancelAll()).toEqual([])
    expect(manager.completeTask('own', { final_message: 'late' })).toBe(false)
    expect(manager.failTask('own', 'late')).toBe(false)
    await disposed
    expect(statuses(store)).toEqual(['a running', 'own running'])
  })

  it('K13: is in use until the grace of its runs has passed', async () => {
    const store = memoryStore()
    const { manager, launch, pass } = limitedTasks({ store })
    await launch('a', {}, { run: never })
    const disposed = manager.dispose()
    await tick()
    expect(() => new AsyncTaskManager({ store })).toThrow(StoreInUseError)
    await pass(100)
    await disposed
    await nextProcess(store, { run: untilAborted })
  })

  it('K13: cancels everything with the option cancel', async () => {
    const store = memoryStore()
    const { manager, launch } = limitedTasks({ store, whenFull: 'queue' })
    await launch('a')
    await launch('b')
    await manager.dispose({ cancel: true })
    expect(statuses(store).sort()).toEqual(['a cancelled', 'b cancelled'])
  })

  it('K13: cancels everything with the option cancel of `dispose` of `createAgentTasks`', async () => {
    for (const options of [{ cancel: true }, {}, undefined]) {
      const store = memoryStore()
      const tasks = createAgentTasks({ store, clock: createManualClock(), subagents: { work: untilAborted } })
      const handle = tasks.launch('work', 'dig')
      const result = handle.result.catch((error: unknown) => error)
      await tasks.manager.stored()
      await tasks.dispose(options)
      const isCancelled = options?.cancel === true
      expect(await result).toMatchObject({ code: isCancelled ? 'TASK_CANCELLED' : 'DISPOSED' })
      expect(statuses(store)).toEqual([`${handle.id} ${isCancelled ? 'cancelled' : 'running'}`])
    }
    const tasks = createAgentTasks()
    expect(() => tasks.dispose({ cancle: true } as never)).toThrow(/cancle/)
    await tasks.dispose()
  })

  it('K13, K4: does not mark a result as a possible repeat whose message was still being stored', async () => {
    const store = memoryStore()
    const clock = createManualClock()
    let answer: (() => void) | undefined
    const slow = {
      ...store,
      write: async (changes: Parameters<MemoryStore['write']>[0]) => {
        await store.write(changes)
        if (store.contents().deliveries.length > 0) await new Promise<void>((resolve) => (answer = resolve))
      },
    }
    const sent: unknown[] = []
    const tasks = createAgentTasks({
      store: slow,
      clock,
      isAgentBusy: () => false,
      triggerAgentTurn: (text) => void sent.push(text),
    })
    tasks.manager.registerTask({ id: 'told', subagentName: 'agent', goalPrompt: 'dig' })
    tasks.manager.completeTask('told', { final_message: 'a bone' })
    await tasks.manager.stored()
    clock.advance(0)
    await tick()
    expect(store.contents().deliveries).toMatchObject([{ state: 'sent', taskIds: ['told'] }])
    const disposed = tasks.dispose()
    await tick()
    answer?.()
    await tick()
    answer?.()
    await disposed
    expect(sent).toEqual([])
    const { manager } = await nextProcess(store, { run: untilAborted }, { wasDelivered: () => false })
    expect(manager.getPendingNotifications()).toMatchObject([{ id: 'told' }])
    expect(manager.getTask('told')).not.toHaveProperty('isRepeat')
  })

  it('K13: refuses an unknown option, and changes nothing', async () => {
    const { manager, launch } = limitedTasks({ store: memoryStore() })
    await launch('a')
    expect(() => manager.dispose({ cancelled: true } as object)).toThrow(/cancelled/)
    expect(manager.getTask('a')).toMatchObject({ status: 'running' })
  })

  it('K13: without a store, cancels active tasks', async () => {
    const { manager, launch } = limitedTasks()
    await launch('a')
    await manager.dispose()
    expect(manager.getTask('a')).toMatchObject({ status: 'cancelled' })
  })
})

describe('a run that the next process follows', () => {
  it('K13: is not aborted, learns that it was left, and delays nothing', async () => {
    const store = memoryStore()
    const { manager, launch, clock } = limitedTasks({ store })
    const seen: unknown[] = []
    const run = (_input: unknown, { signal, durability, ask }: RunContext) => {
      signal.addEventListener('abort', () => seen.push('abort'))
      durability?.left?.addEventListener('abort', () => seen.push('left'))
      void ask('Which?').catch(() => seen.push('withdrawn'))
      return never()
    }
    await launch('a', { timeoutMs: 1000 }, { run, survivesHost: true })
    await manager.dispose()
    expect(seen).toEqual(['left'])
    expect(clock.pending).toBe(0)
    const { recovery } = await nextProcess(store, { run, survivesHost: true })
    expect(recovery).toMatchObject({ adopted: ['a'] })
  })

  it('K13: is not left while it is being stopped', async () => {
    const store = memoryStore()
    const { manager, launch, pass } = limitedTasks({ store })
    const seen: unknown[] = []
    const run = (_input: unknown, { signal, durability }: RunContext) => {
      signal.addEventListener('abort', () => seen.push('abort'))
      durability?.left?.addEventListener('abort', () => seen.push('left'))
      return never()
    }
    await launch('a', { timeoutMs: 10 }, { run, survivesHost: true })
    await pass(10)
    const disposed = manager.dispose()
    await pass(100)
    await disposed
    expect(seen).toEqual(['abort'])
  })

  it('K13: is aborted where the next process could not follow it', async () => {
    const store = memoryStore()
    const { manager, launch } = limitedTasks({ store })
    await launch('a', { retry: interrupted }, { run: untilAborted, survivesHost: true, canResume: () => false })
    await manager.dispose()
    const { recovery, row } = await nextProcess(store, {
      run: untilAborted,
      survivesHost: true,
      canResume: () => false,
    })
    expect(recovery).toMatchObject({ retried: ['a'] })
    expect(row('a')).toMatchObject({ attempt: 1 })
  })
})

describe('a durable run', () => {
  it('K13: waits on in the next process, and runs no code of its own at the stop', async () => {
    const seen: string[] = []
    const run = async ({ sleep, step }: RunContext): Promise<unknown> => {
      try {
        await sleep(60_000)
        await step('a', () => seen.push('a'))
      } catch (error) {
        seen.push('catch')
        await step('compensate', () => seen.push('compensate'))
        throw error
      } finally {
        seen.push('finally')
      }
      return 'done'
    }
    const first = durableProcess(run, { graceMs: 1000 })
    await first.launch()
    await first.manager.dispose()
    await settle()
    expect(seen).toEqual([])
    expect(first.clock.pending).toBe(0)
    const next = await first.next(run)
    next.clock.advance(60_000)
    await settle()
    expect(seen).toEqual(['a', 'finally'])
    expect(next.task()).toMatchObject({ status: 'completed' })
    expect(next.task()?.attempt).toBeUndefined()
  })

  it('K13: keeps what an open step returns within its grace, and does not go on', async () => {
    const seen: string[] = []
    const run = async ({ step, signal }: RunContext): Promise<unknown> => {
      const saved = await step('work', () => {
        seen.push('work')
        return new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('saved')))
      })
      seen.push(`went on with ${saved}`)
      return saved
    }
    const first = durableProcess(run, { graceMs: 1000 })
    await first.launch()
    await first.manager.dispose()
    await settle()
    expect(seen).toEqual(['work'])
    expect(first.clock.pending).toBe(0)
    const next = await first.next(run)
    expect(seen).toEqual(['work', 'went on with saved'])
    expect(next.task()).toMatchObject({ status: 'completed' })
    expect(next.task()?.attempt).toBeUndefined()
  })

  it('K13: keeps a step open that throws at the stop, and drops one that returns after the grace', async () => {
    const calls: string[] = []
    const ends: ((value: string) => void)[] = []
    const run = ({ step, signal }: RunContext): Promise<unknown> =>
      Promise.all([
        step('thrown', () => {
          calls.push('thrown')
          return new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          )
        }),
        step('late', () => {
          calls.push('late')
          return new Promise<string>((resolve) => ends.push(resolve))
        }),
      ])
    const first = durableProcess(run, { graceMs: 1000 })
    await first.launch()
    const disposed = first.manager.dispose()
    await settle()
    first.clock.advance(1000)
    await disposed
    for (const end of ends) end('too late')
    await settle()
    const next = await first.next(run)
    const ended = next.manager.dispose()
    await settle()
    next.clock.advance(1000)
    await ended
    expect(calls).toEqual(['thrown', 'late', 'thrown', 'late'])
  })

  it('K13: that waits for its children stores no result of that wait', async () => {
    const run = async ({ launch, children }: RunContext): Promise<unknown> => {
      launch({ id: 'child', subagentName: 'helper', goalPrompt: 'help', whenFull: 'queue' })
      const { settled } = await children.waitFor()
      return { got: settled.map(({ status }) => status) }
    }
    const first = durableProcess(run, { maxChildTasks: 0, graceMs: 1000 })
    await first.launch()
    await first.manager.dispose()
    const next = await first.next(run, { maxChildTasks: 1 })
    expect(next.task()).toMatchObject({ status: 'completed', output: { got: ['completed'] } })
  })

  it('K13: is stopped at most five times in a row without progress', async () => {
    const run = ({ step, signal }: RunContext): Promise<unknown> =>
      step(
        'work',
        () => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('no')))),
      )
    let present = durableProcess(run)
    await present.launch()
    for (let stop = 1; stop <= 6; stop += 1) {
      await present.manager.dispose()
      present = await present.next()
      expect(present.task()?.attempt).toBeUndefined()
    }
    expect(present.task()).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
  })
})

describe('what a host has in its hands', () => {
  it('K13, H1: handles reject with DISPOSED, loops end, and waits for idleness resolve', async () => {
    const store = memoryStore()
    const tasks = createAgentTasks({ store, clock: createManualClock(), subagents: { agent: untilAborted } })
    const handle = tasks.launch('agent', 'goal')
    const other = tasks.launch('agent', 'goal')
    const result = handle.result.catch((error: unknown) => error)
    const events: string[] = []
    const loop = (async () => {
      for await (const { type } of handle) events.push(type)
    })()
    const idle = tasks.manager.onIdle()
    await tasks.manager.stored()
    await tasks.dispose()
    await Promise.all([loop, idle])
    expect(await result).toBeInstanceOf(DisposedError)
    await expect(other.result).rejects.toBeInstanceOf(DisposedError)
    expect(events).toEqual([])
    expect(handle.record).toMatchObject({ status: 'running' })
  })

  it('K13, H1: a result that was not stored yet is owed to the next process, and no handle returns it', async () => {
    const store = memoryStore()
    const tasks = createAgentTasks({
      store,
      clock: createManualClock(),
      subagents: { agent: () => Promise.resolve('done') },
    })
    const handle = tasks.launch('agent', 'goal')
    await tick()
    const disposed = tasks.dispose()
    await expect(handle.result).rejects.toBeInstanceOf(DisposedError)
    await disposed
    const { manager } = await nextProcess(store, { run: untilAborted })
    expect(manager.getPendingNotifications()).toMatchObject([{ id: handle.id, status: 'completed' }])
  })

  it('K13: a synchronous call and a wait answer that the host is closing', async () => {
    const tasks = createAgentTasks({
      store: memoryStore(),
      clock: createManualClock(),
      subagents: { agent: untilAborted },
    })
    const call = tasks.tools.task.execute({ subagent_name: 'agent', goal_prompt: 'goal' })
    await tick()
    const wait = tasks.tools.wait_for_async_tasks.execute({})
    await tick()
    await tasks.dispose()
    for (const result of [await call, await wait]) {
      expect(result.llmContent).toMatch(/this host is closing.*goes on with the task or reports its end/)
      expect(result.llmContent).not.toContain('Wait again')
    }
  })
})
