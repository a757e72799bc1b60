/** What a crash leaves of tasks that run after others: F15. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskManagerOptions, type RunInput } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'

/** A process with a store that has `a` and `b`, which run, and `c`, which waits for both. */
async function firstProcess(options: AsyncTaskManagerOptions = {}) {
  const store = memoryStore()
  const tasks = limitedTasks({ store, maxAsyncTasks: 4, ...options })
  await tasks.launch('a')
  await tasks.launch('b')
  await tasks.launch('c', { after: ['a', 'b'], timeoutMs: 500, context: { for: 'c' } })
  const row = (id: string) => store.contents().tasks.find((task) => task.id === id)
  return { ...tasks, store, row }
}

/** The next process on what a store held when the last one was killed. */
async function nextProcess(from: MemoryStore, options: AsyncTaskManagerOptions = {}) {
  const store = from.copy()
  const inputs: RunInput[] = []
  const ends: (() => void)[] = []
  const clock = createManualClock(9_000)
  const manager = new AsyncTaskManager({
    store,
    clock,
    graceMs: 0,
    maxAsyncTasks: 4,
    findRunner:
      () =>
      (input, { signal }) => {
        inputs.push(input)
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({}))
          ends.push(() => resolve({ final_message: `end of ${input.id}` }))
        })
      },
    ...options,
  })
  onTestFinished(() => manager.dispose())
  const recovery = await manager.recovered
  await tick()
  await tick()
  const { queue } = manager.registry.pools.task
  return {
    manager,
    store,
    clock,
    inputs,
    recovery,
    get: (id: string) => manager.getTask(id),
    row: (id: string) => store.contents().tasks.find((task) => task.id === id),
    left: () => ({ slots: manager.actor.getSnapshot().slots, queued: queue.size, bytes: queue.bytes }),
    end: async (n: number) => {
      ends[n]?.()
      await tick()
    },
  }
}

const interrupted = { attempts: 3, on: ['interrupted'] } as const

describe('a task that waits for others when its process dies', () => {
  it('F15: has in its row what it waits for, and how those have ended that have, in the same write', async () => {
    const { row, runs, store } = await firstProcess()
    expect(row('c')).toMatchObject({
      status: 'queued',
      record: { after: ['a', 'b'], waitsFor: ['a', 'b'] },
      run: { after: { onFailed: 'fail', tasks: [{ id: 'a' }, { id: 'b' }] } },
    })
    const writes: string[][] = []
    const write = store.write.bind(store)
    store.write = (changes) => {
      writes.push(changes.map((change) => ('put' in change ? change.put.id : `-${change.remove}`)))
      return write(changes)
    }
    await runs[0]?.end('found it')
    expect(writes.filter((ids) => ids.includes('a'))).toEqual([expect.arrayContaining(['a', 'c'])])
    expect(row('c')).toMatchObject({
      record: { waitsFor: ['b'] },
      run: {
        after: {
          tasks: [{ id: 'a', result: { status: 'completed', output: { final_message: 'found it' } } }, { id: 'b' }],
        },
      },
    })
  })

  it('F15: waits again, and starts when the last one has ended, with what ended before the crash', async () => {
    const first = await firstProcess()
    await first.runs[0]?.end('found it')
    const second = await nextProcess(first.store, { findRunner: () => undefined })
    // Without a runner nothing can go on: what ran has failed, and what waited cannot be run.
    expect(second.get('c')).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    const repeating = await firstProcess()
    await repeating.runs[0]?.end('found it')
    await repeating.launch('d', { retry: interrupted })
    await repeating.launch('e', { after: ['a', 'd'] })
    const next = await nextProcess(repeating.store)
    expect(next.recovery).toMatchObject({ queued: ['c', 'e'], retried: ['d'], interrupted: ['b'] })
    expect(next.get('c')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED' })
    expect(next.get('e')).toMatchObject({ status: 'queued', after: ['a', 'd'], waitsFor: ['d'] })
    expect(next.inputs.map(({ id }) => id)).toEqual(['d'])
    await next.end(0)
    expect(next.inputs.at(-1)).toMatchObject({
      id: 'e',
      results: {
        a: { status: 'completed', output: { final_message: 'found it' } },
        d: { status: 'completed', output: { final_message: 'end of d' } },
      },
    })
    await next.end(1)
    expect([next.get('e')?.status, next.left()]).toEqual(['completed', { slots: 0, queued: 0, bytes: 0 }])
  })

  it('F15: fails when what it waited for was interrupted by the crash, and runs with onFailedDependency: run', async () => {
    const { store, launch } = await firstProcess()
    await launch('d', { after: ['a'], onFailedDependency: 'run' })
    const next = await nextProcess(store)
    expect(next.get('c')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED', delivery: 'owed' })
    expect(next.inputs).toMatchObject([{ id: 'd', results: { a: { status: 'failed', errorCode: 'INTERRUPTED' } } }])
    expect(next.row('c')).toMatchObject({ status: 'failed' })
  })

  it('F15: waits again for a task that waits itself, in any order of their priorities', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 4 })
    await launch('a', { retry: interrupted })
    await launch('b', { after: ['a'] })
    await launch('c', { after: ['b'], priority: 5 })
    const next = await nextProcess(store)
    expect(next.inputs.map(({ id }) => id)).toEqual(['a'])
    expect([next.get('b'), next.get('c')]).toMatchObject([{ waitsFor: ['a'] }, { waitsFor: ['b'] }])
    await next.end(0)
    expect(next.inputs.map(({ id }) => id)).toEqual(['a', 'b'])
    await next.end(1)
    expect(next.inputs.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  })

  it('F15: waits for a slot alone when all had ended, and its longest wait counts from then', async () => {
    const store = memoryStore()
    const first = limitedTasks({ store, maxAsyncTasks: 1, whenFull: 'queue' })
    await first.launch('a')
    await first.launch('b', { after: ['a'] })
    await first.launch('x', { priority: 1 })
    await first.pass(5_000)
    await first.runs[0]?.end('found it')
    await first.launch('y', { after: ['a'] })
    expect(first.manager.getTask('b')?.status).toBe('queued')
    const next = await nextProcess(store, { maxAsyncTasks: 0, queue: { maxWaitMs: 4_000 } })
    expect(next.get('b')).toMatchObject({ status: 'queued', after: ['a'] })
    expect(next.get('b')).not.toHaveProperty('waitsFor')
    // It has waited for a slot since 6000, and it is 9000.
    next.clock.advance(999)
    expect(next.get('b')?.status).toBe('queued')
    next.clock.advance(1)
    expect(next.get('b')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
    const roomy = await nextProcess(store, { maxAsyncTasks: 4 })
    const results = { a: { status: 'completed', output: { final_message: 'found it' } } }
    expect(roomy.inputs.find(({ id }) => id === 'b')).toMatchObject({ results })
    expect(roomy.inputs.find(({ id }) => id === 'y')).toMatchObject({ results })
  })

  it('F15: has the results again when its run is repeated after a crash', async () => {
    const store = memoryStore()
    const first = limitedTasks({ store, maxAsyncTasks: 4 })
    await first.launch('a')
    await first.launch('b', { after: ['a'], retry: interrupted })
    await first.runs[0]?.end('found it')
    expect(first.started()).toEqual(['a', 'b'])
    const next = await nextProcess(store)
    const again = await nextProcess(next.store)
    expect(again.recovery.retried).toEqual(['b'])
    expect(again.inputs).toMatchObject([
      { id: 'b', results: { a: { status: 'completed', output: { final_message: 'found it' } } } },
    ])
  })

  it('F15: keeps the records that it names also while an earlier process is taken over', async () => {
    const store = memoryStore()
    const first = limitedTasks({ store, maxAsyncTasks: 5 })
    for (const id of ['a', 'p', 'q', 'r', 's', 't']) await first.launch(id, { retry: interrupted, whenFull: 'queue' })
    await first.launch('c', { after: ['a', 't'] })
    for (const run of first.runs.slice(0, 5)) {
      await run.end()
      first.manager.markNotified(run.id)
    }
    await first.manager.stored()
    const next = await nextProcess(store, { maxAsyncTasks: 1 })
    expect(next.manager.getAllTasks().map(({ id }) => id)).toEqual(['a', 'r', 's', 't', 'c'])
    next.manager.cancelTask('c')
    await next.manager.stored()
    await tick()
    expect(next.get('a')).toBeUndefined()
  })

  it('F15: fails when a record that it names was lost', async () => {
    const { store } = await firstProcess()
    const damaged = store.copy()
    damaged.open()
    await damaged.write([{ table: 'tasks', remove: 'a' }])
    const next = await nextProcess(damaged)
    expect(next.get('c')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED' })
    expect(next.get('c')?.error).toMatch(
      /task a, which had to end first, has failed: The result of this task is unknown/,
    )
  })

  it('F15: does not start, and is not lost, whichever write was the last', async () => {
    const store = memoryStore()
    const copies: MemoryStore[] = []
    const write = store.write.bind(store)
    store.write = async (changes) => {
      await write(changes)
      copies.push(store.copy())
    }
    const first = limitedTasks({ store, maxAsyncTasks: 2 })
    await first.launch('a', { retry: interrupted })
    await first.launch('b', { retry: interrupted, after: ['a'] })
    await first.runs[0]?.end('found it')
    await first.runs[1]?.end('done')
    expect(copies.length).toBeGreaterThanOrEqual(4)
    for (const copy of copies) {
      const next = await nextProcess(copy, { findRunner: () => untilAborted })
      const [a, b] = [next.get('a')?.status, next.get('b')?.status]
      if (b === undefined) continue
      expect(['queued running', 'running completed', 'completed completed']).toContain(`${b} ${a}`)
    }
  })
})
