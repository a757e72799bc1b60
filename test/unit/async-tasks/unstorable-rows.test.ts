/** Rows that a store cannot hold: they must not keep the others from being written, whatever they have. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { memoryStore, sqliteStore, StoreError, type Store, type StoreChange } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { untilAborted } from '../../support/limited-tasks.js'

const task = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'goal' })
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A store that cannot hold a row with more than 200,000 characters of JSON; JSON itself ends at 536,870,888. */
function pickyStore() {
  const memory = memoryStore()
  const batches: StoreChange[][] = []
  const store: Store = {
    ...memory,
    write: async (changes) => {
      for (const change of changes) {
        if (!('put' in change) || JSON.stringify(change.put).length <= 200_000) continue
        const { table, put } = change
        throw new StoreError('STORE_FAILED', `the row ${put.id} is too long`, { row: { table, id: put.id } })
      }
      await memory.write(changes)
      batches.push([...changes])
    },
  }
  return { memory, store, batches }
}

function managerOn(store: Store) {
  const errors: string[] = []
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ store, clock, onError: (error) => void errors.push(String(error)) })
  onTestFinished(() => manager.dispose())
  return { manager, errors, clock }
}

describe('a row that the store cannot hold', () => {
  it('K2, K10: is written with the rest of its tick, in one write, without what cannot be held', async () => {
    const { memory, store, batches } = pickyStore()
    const { manager, errors, clock } = managerOn(store)
    const settled: string[] = []
    manager.settled$.subscribe(({ id }) => settled.push(id))
    for (const id of ['a', 'b', 'c']) manager.registerTask({ ...task(id), timeoutMs: 60_000 })
    await manager.stored()
    const before = batches.length
    manager.completeTask('a', {})
    manager.completeTask('b', { final_message: 'x'.repeat(300_000) })
    manager.failTask('c', 'no luck')
    await tick()
    expect(batches.slice(before).map((changes) => changes.length)).toEqual([3])
    expect(settled).toEqual(['a', 'b', 'c'])
    expect(errors).toEqual(['StoreError: the row b is too long'])
    expect(clock.pending).toBe(0)
    const { manager: next } = managerOn(memory.copy())
    expect(next.getPendingNotifications()).toMatchObject([
      { id: 'a', status: 'completed' },
      {
        id: 'b',
        status: 'completed',
        subagentName: 'agent',
        goalPrompt: 'goal',
        timeoutMs: 60_000,
        output: { final_message: 'The output was lost, because the store could not hold it.' },
      },
      { id: 'c', status: 'failed', error: 'no luck' },
    ])
  })

  it('K10: is written like that from then on, and reported once', async () => {
    const { memory, store } = pickyStore()
    const { manager, errors } = managerOn(store)
    manager.registerTask(task('b'))
    await manager.stored()
    manager.completeTask('b', { final_message: 'x'.repeat(300_000) })
    await tick()
    const lease = manager.lease()
    lease?.acknowledge()
    await tick()
    expect(memory.contents().tasks).toMatchObject([{ id: 'b', delivery: 'delivered' }])
    expect(errors).toHaveLength(1)
    expect(manager.getTask('b')?.output?.final_message).toHaveLength(300_000)
  })

  it('K1: is refused when it is that of a launch: its run would not be known; the others of its tick start', async () => {
    const { memory, store, batches } = pickyStore()
    const { manager, errors, clock } = managerOn(store)
    const run = vi.fn(untilAborted)
    manager.launch(task('b'), run)
    manager.launch({ ...task('a'), goalPrompt: 'x'.repeat(300_000) }, run)
    manager.launch(task('c'), run)
    await manager.stored()
    await tick()
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      errorCode: 'NOT_STORED',
      error: 'The task could not be stored and was not started: the row a is too long',
    })
    expect(memory.contents().tasks.map(({ id }) => id)).toEqual(['b', 'c'])
    expect([run.mock.calls.length, batches.length, clock.pending]).toEqual([2, 1, 0])
    expect(errors).toEqual(['StoreError: the row a is too long'])
  })

  it('is written without what cannot be held when the task has ended in the tick of its launch', async () => {
    const { memory, store } = pickyStore()
    const { manager } = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', { final_message: 'x'.repeat(300_000) })
    await manager.stored()
    expect(memory.contents().tasks).toMatchObject([{ id: 'a', status: 'completed', delivery: 'owed' }])
  })

  it('is reduced once: a store that cannot hold the rest either is tried again later', async () => {
    const memory = memoryStore()
    const row = { table: 'tasks', id: 'a' } as const
    let isBroken = false
    const store: Store = {
      ...memory,
      write: async (changes) => {
        if (isBroken) throw new StoreError('STORE_FAILED', 'no room', { row })
        await memory.write(changes)
      },
    }
    const { manager, errors, clock } = managerOn(store)
    manager.registerTask(task('a'))
    await manager.stored()
    isBroken = true
    manager.completeTask('a', {})
    await tick()
    expect(errors).toEqual(['StoreError: no room', 'StoreError: no room'])
    isBroken = false
    clock.advance(100)
    await manager.stored()
    expect(memory.contents().tasks).toMatchObject([{ id: 'a', delivery: 'owed' }])
  })
})

describe.each(['memoryStore', 'sqliteStore'])('%s', (name) => {
  it('names the row that it cannot write, and writes nothing of that batch', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-rows-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = name === 'memoryStore' ? memoryStore() : sqliteStore(join(folder, 'tasks.db'))
    const put = (id: string, registration: Readonly<Record<string, unknown>>): StoreChange => ({
      table: 'instances',
      put: { id, secretSha256: '', registration },
    })
    store.open()
    const error: unknown = await store.write([put('good', {}), put('bad', { big: 1n })]).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ code: 'STORE_FAILED', row: { table: 'instances', id: 'bad' } })
    expect(String(error)).toContain('the row "bad" of table instances cannot be written (Do not know how to')
    await store.write([put('later', {})])
    store.close()
    expect(store.open().instances.map(({ id }) => id)).toEqual(['later'])
    store.close()
  })
})

describe('the texts of a record', () => {
  it('have a length that a store can hold, however long what a run throws or reports is', async () => {
    const { memory, store } = pickyStore()
    const { manager } = managerOn(store)
    const long = `begin${'\u0001'.repeat(1_000_000)}end`
    const error = Object.assign(new Error(long), { name: long, code: long })
    manager.registerTask(task('a'))
    expect(manager.reportProgress('a', { progress: 1, message: long })).toBe(true)
    expect(manager.getTask('a')?.progress?.message).toHaveLength(4096)
    manager.failTask('a', long)
    manager.launch(task('b'), () => Promise.reject(error))
    await manager.waitFor(['b'])
    for (const id of ['a', 'b']) {
      const { error: text = '' } = manager.getTask(id) ?? {}
      expect(text.length).toBeLessThanOrEqual(65_536)
      expect(text).toMatch(/^begin[^]*\[\d+ characters are left out here\][^]*end$/)
    }
    expect(manager.getTask('b')).toMatchObject({ errorName: long.slice(0, 256), errorCode: long.slice(0, 256) })
    expect(memory.contents().tasks).toHaveLength(2)
  })
})
