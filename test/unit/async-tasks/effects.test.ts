/** What follows a transition: effects in one order, and features in theirs (ADR 51). */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ownerOfRun } from '../../../machines/run-owner.js'
import type { Feature } from '../../../src/async-tasks/feature.js'
import { AsyncTaskManager, type AsyncTaskManagerOptions, type Runner } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { memoryStore } from '../../../src/store/index.js'

function setUp(options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ clock, maxAsyncTasks: -1, onError: () => undefined, ...options })
  onTestFinished(() => manager.dispose())
  const log: string[] = []
  const launch = (id: string, more: { owner?: string; timeoutMs?: number } = {}): void => {
    const runner: Runner = (_, { signal }) =>
      new Promise((resolve) => {
        log.push(`${id} starts`)
        signal.addEventListener('abort', () => {
          log.push(`${id} aborts`)
          resolve({})
        })
      })
    manager.launch({ id, subagentName: 's', goalPrompt: 'g', ...more }, runner)
  }
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, advance, manager, registry: manager.registry, log, launch }
}

/** A task with two children, of which the first has a child. */
async function withFamily(timeoutMs?: number) {
  const host = setUp()
  host.launch('top', timeoutMs === undefined ? {} : { timeoutMs })
  host.launch('one', { owner: ownerOfRun('top') })
  host.launch('two', { owner: ownerOfRun('top') })
  host.launch('below', { owner: ownerOfRun('one') })
  await host.advance(0)
  host.log.length = 0
  return host
}

describe('effects', () => {
  it('F5: on cancel, the run of the parent is aborted first, and all have aborted when the call returns', async () => {
    const { manager, log } = await withFamily()
    manager.cancelTask('top')
    expect(log).toEqual(['top aborts', 'one aborts', 'below aborts', 'two aborts'])
    expect(manager.getActiveTasks()).toEqual([])
  })

  it('F5: at a deadline, the runs of the children are aborted before that of their parent', async () => {
    const { advance, log } = await withFamily(100)
    await advance(100)
    expect(log).toEqual(['one aborts', 'below aborts', 'two aborts', 'top aborts'])
  })

  it('F5: the call returns each cancelled task once, a parent before its children', async () => {
    const { manager } = await withFamily()
    const cancelled = manager.cancelAll()
    expect(cancelled.toSorted()).toEqual(['below', 'one', 'top', 'two'])
    expect(cancelled.indexOf('top')).toBeLessThan(cancelled.indexOf('one'))
    expect(cancelled.indexOf('one')).toBeLessThan(cancelled.indexOf('below'))
  })

  it('F10: a budget that a run exceeds is in the snapshot at once: it says when the time to wrap up ends', async () => {
    const { advance, clock, manager, registry } = setUp()
    manager.launch(
      { id: 'a', subagentName: 's', goalPrompt: 'g', budget: { tokens: 1, wrapUpMs: 50 } },
      (_, context) =>
        new Promise((resolve) => {
          context.signal.addEventListener('abort', () => resolve({}))
          context.spend({ tokens: 2 })
          expect(registry.snapshot.nextDeadlineAt).toBe(50)
        }),
    )
    await advance(0)
    expect(registry.snapshot).toMatchObject({ nextDeadlineAt: 50, nextDeadlineOf: 'a' })
    expect(clock.pending).toBe(1)
  })

  it('F8: tasks that get their slots together start in their order, also when the first start writes the store', async () => {
    const { advance, manager, launch, log } = setUp({ store: memoryStore(), maxAsyncTasks: 1, whenFull: 'queue' })
    for (const id of ['a', 'b', 'c']) launch(id)
    await advance(0)
    manager.setMaxAsyncTasks(3)
    await advance(0)
    expect(log).toEqual(['a starts', 'b starts', 'c starts'])
  })

  it('K10: while the store cannot be written, what waits does not start, and what is cancelled is aborted', async () => {
    const store = memoryStore()
    const { advance, manager, launch, log } = setUp({ store, maxAsyncTasks: 2, whenFull: 'queue' })
    for (const id of ['a', 'b', 'c']) launch(id)
    await advance(0)
    log.length = 0
    const write = vi.spyOn(store, 'write').mockImplementation(() => {
      throw new Error('disk full')
    })
    manager.setMaxAsyncTasks(3)
    manager.cancelTask('b')
    await advance(10)
    expect(log).toEqual(['b aborts'])
    write.mockRestore()
    await advance(60_000)
    expect(log).toEqual(['b aborts', 'c starts'])
  })
})

describe('a start that waits for the store', () => {
  it('K10: gives its slot back when its task is cancelled meanwhile', async () => {
    const store = memoryStore()
    const { advance, manager, launch, log } = setUp({ store, maxAsyncTasks: 1, whenFull: 'queue' })
    for (const id of ['a', 'b']) launch(id)
    await advance(0)
    const write = vi.spyOn(store, 'write').mockImplementation(() => {
      throw new Error('disk full')
    })
    manager.setMaxAsyncTasks(2)
    expect(manager.actor.getSnapshot().slots).toBe(2)
    manager.cancelTask('b')
    write.mockRestore()
    await advance(60_000)
    expect(log).toEqual(['a starts'])
    expect(manager.actor.getSnapshot().slots).toBe(1)
  })
})

describe('features', () => {
  it('run their hooks in the order in which they were added, once each, and go with the registry', async () => {
    const { manager, registry } = setUp({ maxAsyncTasks: 0 })
    const calls: string[] = []
    const named = (name: string) => (): Feature => ({
      ended: ({ record }) => void calls.push(`${name} ended ${record.id}`),
      pruned: ({ record }) => void calls.push(`${name} pruned ${record.id}`),
      closing: () => void calls.push(`${name} closing ${registry.notifications$.closed ? 'late' : 'open'}`),
      disposed: () => void calls.push(`${name} disposed`),
    })
    const [one, other] = [named('one'), named('other')]
    expect(registry.use(one)).toBe(registry.use(one))
    registry.use(other)
    registry.notifications$.subscribe({ complete: () => calls.push('streams complete') })
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    manager.cancelTask('a')
    expect(calls.splice(0)).toEqual(['one ended a', 'other ended a', 'one pruned a', 'other pruned a'])
    await manager.dispose()
    expect(calls).toEqual([
      'one closing open',
      'other closing open',
      'streams complete',
      'one disposed',
      'other disposed',
    ])
  })

  it('A2: waits, questions and then handlers are notified of an end, and none is called inside the transition', async () => {
    const { manager, registry, advance } = setUp()
    const order: string[] = []
    manager.transitions$.subscribe(({ to }) => order.push(`stream ${to}`))
    manager.onTaskCompleted(() => order.push('handler'))
    registry.use(() => ({ ended: () => void order.push('last feature') }))
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    const waiting = manager.waitFor(['a']).then(() => order.push('wait'))
    manager.completeTask('a', {})
    expect(order).toEqual(['stream running', 'stream completed', 'handler', 'last feature', 'stream leased'])
    await advance(0)
    await waiting
    expect(order.at(-1)).toBe('wait')
  })
})
