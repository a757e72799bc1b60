// Which rows are written, and what is left to be written.
import { describe, expect, it } from 'vitest'
import { createManualClock } from 'agent-tasks/testing'
import { StoreSync } from '../../../src/store/store-sync.js'
import type { Store, StoreChange, StoredCommandTask, StoredInstance } from '../../../src/store/store.js'
import { rowError } from '../../../src/store/store-errors.js'
import { StoreWriter } from '../../../src/store/store-writer.js'

interface Task {
  readonly id: string
  status: string
}

const rowOf = ({ id, status }: Task, isReduced: boolean): StoredCommandTask => ({
  id,
  status,
  instanceId: 'one',
  seq: 1,
  createdAt: 0,
  record: isReduced ? { isReduced } : { whole: true },
})
const worker: StoredInstance = { id: 'w', secretSha256: '', registration: {} }

/** Until all that follows at once is over. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function createSync(isReducible = true) {
  return new StoreSync<{ readonly commandTasks: Task; readonly instances: StoredInstance }>({
    commandTasks: { rowOf, isReducible },
    instances: { rowOf: (row) => row },
  })
}

function writing(sync: ReturnType<typeof createSync>, write: (changes: readonly StoreChange[]) => void) {
  const clock = createManualClock()
  const reported: unknown[] = []
  const store: Pick<Store, 'write'> = {
    write: (changes) => Promise.resolve().then(() => write(changes)),
  }
  const writer = new StoreWriter({
    store,
    clock,
    pending: sync,
    report: (error) => reported.push(error),
    outbox: { batch: (run) => run(), mark: () => undefined, release: () => undefined },
  })
  return { clock, reported, writer }
}

describe('rows that are out of date', () => {
  it('are made when they are written: one row for all changes of an item', () => {
    const sync = createSync()
    const task = { id: 'a', status: 'queued' }
    sync.put('commandTasks', 'a', task)
    task.status = 'running'
    sync.put('commandTasks', 'a', task)
    expect(sync.take()).toEqual([{ table: 'commandTasks', put: rowOf(task, false) }])
  })

  it('are removed instead when their item is gone, and put when it is there again', () => {
    const sync = createSync()
    const task = { id: 'a', status: 'queued' }
    sync.put('commandTasks', 'a', task)
    sync.remove('commandTasks', 'a')
    expect(sync.take()).toEqual([{ table: 'commandTasks', remove: 'a' }])
    sync.put('commandTasks', 'a', task)
    expect(sync.take()).toEqual([{ table: 'commandTasks', put: rowOf(task, false) }])
  })

  it('cause no write when their item was only pruned: they go with the next one, or with the end', async () => {
    const sync = createSync()
    const task = { id: 'a', status: 'completed' }
    const written: (readonly StoreChange[])[] = []
    const { writer } = writing(sync, (changes) => written.push(changes))
    sync.put('commandTasks', 'a', task)
    sync.prune('commandTasks', 'a')
    writer.flush()
    await turn()
    expect([sync.isEmpty(), writer.isSettled(), written]).toEqual([true, true, []])
    sync.put('instances', 'w', worker)
    expect(sync.isEmpty()).toBe(false)
    await writer.stored()
    expect(written.splice(0)).toEqual([
      [
        { table: 'commandTasks', remove: 'a' },
        { table: 'instances', put: worker },
      ],
    ])
    sync.prune('commandTasks', 'b')
    sync.put('commandTasks', 'b', task)
    expect(sync.isEmpty()).toBe(false)
    sync.prune('commandTasks', 'b')
    expect(sync.isEmpty()).toBe(true)
    await writer.close()
    expect(written).toEqual([[{ table: 'commandTasks', remove: 'b' }]])
  })

  it('come after the removals, in the order of the tables', () => {
    const sync = createSync()
    const task = { id: 'a', status: 'queued' }
    sync.put('instances', 'w', worker)
    sync.put('commandTasks', 'a', task)
    sync.remove('instances', 'gone')
    expect(sync.take().map((change) => [change.table, 'put' in change])).toEqual([
      ['instances', false],
      ['commandTasks', true],
      ['instances', true],
    ])
  })

  it('are out of date until they are stored', () => {
    const sync = createSync()
    const states = (): unknown[] => [sync.isEmpty(), sync.isPending('commandTasks', 'a')]
    expect(states()).toEqual([true, false])
    sync.put('commandTasks', 'a', { id: 'a', status: 'queued' })
    expect([states(), sync.isPending('instances', 'a')]).toEqual([[false, true], false])
    expect(sync.take()).toHaveLength(1)
    // It is being written.
    expect(states()).toEqual([true, true])
    sync.stored()
    expect([states(), sync.take()]).toEqual([[true, false], []])
  })

  it('are pending again when they were refused, unless they have changed since', () => {
    const sync = createSync()
    const [a, b, newer] = [
      { id: 'a', status: 'queued' },
      { id: 'b', status: 'queued' },
      { id: 'b', status: 'running' },
    ]
    sync.put('commandTasks', 'a', a)
    sync.put('commandTasks', 'b', b)
    sync.put('instances', 'w', worker)
    sync.prune('commandTasks', 'old')
    sync.take()
    sync.put('commandTasks', 'b', newer)
    sync.prune('instances', 'w')
    sync.refused()
    expect([sync.isEmpty(), sync.isPending('commandTasks', 'a')]).toEqual([false, true])
    expect(sync.take()).toEqual([
      { table: 'commandTasks', remove: 'old' },
      { table: 'instances', remove: 'w' },
      { table: 'commandTasks', put: rowOf(a, false) },
      { table: 'commandTasks', put: rowOf(newer, false) },
    ])
    sync.stored()
    // Nothing was taken: nothing comes back.
    sync.refused()
    expect([sync.isEmpty(), sync.take()]).toEqual([true, []])
  })

  it('that were only pruned cause no write when they were refused', () => {
    const sync = createSync()
    sync.prune('commandTasks', 'a')
    sync.put('instances', 'w', worker)
    sync.take()
    sync.prune('instances', 'w')
    sync.refused()
    expect([sync.isEmpty(), sync.isPending('instances', 'w')]).toEqual([true, false])
  })

  it('are written again whole after a failure, with what has changed meanwhile', async () => {
    const sync = createSync()
    const written: (readonly StoreChange[])[] = []
    let isBroken = true
    const { clock, writer, reported } = writing(sync, (changes) => {
      if (isBroken) throw new Error('disk')
      written.push(changes)
    })
    sync.put('commandTasks', 'a', { id: 'a', status: 'queued' })
    writer.flush()
    await turn()
    sync.put('commandTasks', 'b', { id: 'b', status: 'queued' })
    isBroken = false
    clock.advance(100)
    await turn()
    expect(written.map((changes) => changes.length)).toEqual([2])
    expect([sync.isEmpty(), reported.length, clock.pending]).toEqual([true, 1, 0])
  })

  it('are made with less, once and from then on, when the store cannot hold them', async () => {
    const sync = createSync()
    const task = { id: 'a', status: 'queued' }
    const written: (readonly StoreChange[])[] = []
    const { writer, reported, clock } = writing(sync, (changes) => {
      const [change] = changes
      if (change?.table === 'commandTasks' && 'put' in change && change.put.record['whole'] === true) {
        throw rowError('the store', { table: 'commandTasks', id: 'a' }, undefined)
      }
      written.push(changes)
    })
    sync.put('commandTasks', 'a', task)
    await writer.stored()
    expect([sync.isReduced(task), reported.length, clock.pending]).toEqual([true, 1, 0])
    sync.put('commandTasks', 'a', task)
    await writer.stored()
    expect(written).toEqual([
      [{ table: 'commandTasks', put: rowOf(task, true) }],
      [{ table: 'commandTasks', put: rowOf(task, true) }],
    ])
  })

  it('are not reduced again, nor when they are removals, unknown or of a table that has no less', () => {
    const sync = createSync()
    const row = { table: 'commandTasks', id: 'a' } as const
    expect(sync.reduce(row)).toBe(false)
    sync.put('commandTasks', 'a', { id: 'a', status: 'queued' })
    expect([sync.reduce(row), sync.reduce(row)]).toEqual([true, false])
    sync.remove('commandTasks', 'a')
    expect(sync.reduce(row)).toBe(false)
    sync.put('instances', 'w', worker)
    expect(sync.reduce({ table: 'instances', id: 'w' })).toBe(false)
    expect(sync.reduce({ table: 'tasks', id: 'a' })).toBe(false)
    const whole = createSync(false)
    whole.put('commandTasks', 'a', { id: 'a', status: 'queued' })
    expect(whole.reduce(row)).toBe(false)
  })
})
