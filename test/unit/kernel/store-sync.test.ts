// Which rows are written, and what is left to be written.
import { describe, expect, it } from 'vitest'
import { createManualClock } from 'agent-tasks/testing'
import { StoreSync } from '../../../src/kernel/store-sync.js'
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

function createSync(isReducible = true) {
  return new StoreSync<{ readonly commandTasks: Task; readonly instances: StoredInstance }>({
    commandTasks: { rowOf, isReducible },
    instances: { rowOf: (row) => row },
  })
}

function writing(sync: ReturnType<typeof createSync>, write: (changes: readonly StoreChange[]) => void) {
  const clock = createManualClock()
  const reported: unknown[] = []
  const store: Pick<Store, 'write'> = { write }
  const writer = new StoreWriter({
    store,
    clock,
    pending: sync,
    report: (error) => reported.push(error),
    onWritten: () => undefined,
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
    expect(sync.read()).toEqual([{ table: 'commandTasks', put: rowOf(task, false) }])
  })

  it('are removed instead when their item is gone, and put when it is there again', () => {
    const sync = createSync()
    const task = { id: 'a', status: 'queued' }
    sync.put('commandTasks', 'a', task)
    sync.remove('commandTasks', 'a')
    expect(sync.read()).toEqual([{ table: 'commandTasks', remove: 'a' }])
    sync.put('commandTasks', 'a', task)
    expect(sync.read()).toEqual([{ table: 'commandTasks', put: rowOf(task, false) }])
  })

  it('cause no write when their item was only pruned: they go with the next one, or with the end', () => {
    const sync = createSync()
    const task = { id: 'a', status: 'completed' }
    const written: (readonly StoreChange[])[] = []
    const { writer } = writing(sync, (changes) => written.push(changes))
    sync.put('commandTasks', 'a', task)
    sync.prune('commandTasks', 'a')
    expect([sync.isEmpty(), writer.isSettled(), writer.flush(), written]).toEqual([true, true, true, []])
    sync.put('instances', 'w', worker)
    expect([sync.isEmpty(), writer.flush(), written.splice(0)]).toEqual([
      false,
      true,
      [
        [
          { table: 'commandTasks', remove: 'a' },
          { table: 'instances', put: worker },
        ],
      ],
    ])
    sync.prune('commandTasks', 'b')
    sync.put('commandTasks', 'b', task)
    expect(sync.isEmpty()).toBe(false)
    sync.prune('commandTasks', 'b')
    expect(sync.isEmpty()).toBe(true)
    writer.close()
    expect(written).toEqual([[{ table: 'commandTasks', remove: 'b' }]])
  })

  it('come after the removals, in the order of the tables', () => {
    const sync = createSync()
    const task = { id: 'a', status: 'queued' }
    sync.put('instances', 'w', worker)
    sync.put('commandTasks', 'a', task)
    sync.remove('instances', 'gone')
    expect(sync.read().map((change) => [change.table, 'put' in change])).toEqual([
      ['instances', false],
      ['commandTasks', true],
      ['instances', true],
    ])
  })

  it('are kept until they are written', () => {
    const sync = createSync()
    expect(sync.isEmpty()).toBe(true)
    sync.put('commandTasks', 'a', { id: 'a', status: 'queued' })
    expect([sync.isEmpty(), sync.isPending('commandTasks', 'a'), sync.isPending('instances', 'a')]).toEqual([
      false,
      true,
      false,
    ])
    sync.read()
    expect(sync.isEmpty()).toBe(false)
    sync.clear()
    expect([sync.isEmpty(), sync.isPending('commandTasks', 'a'), sync.read()]).toEqual([true, false, []])
  })

  it('are written again whole after a failure, with what has changed meanwhile', () => {
    const sync = createSync()
    const written: (readonly StoreChange[])[] = []
    let isBroken = true
    const { clock, writer, reported } = writing(sync, (changes) => {
      if (isBroken) throw new Error('disk')
      written.push(changes)
    })
    sync.put('commandTasks', 'a', { id: 'a', status: 'queued' })
    expect(writer.flush()).toBe(false)
    sync.put('commandTasks', 'b', { id: 'b', status: 'queued' })
    isBroken = false
    clock.advance(100)
    expect(written.map((changes) => changes.length)).toEqual([2])
    expect([sync.isEmpty(), reported.length, clock.pending]).toEqual([true, 1, 0])
  })

  it('are made with less, once and from then on, when the store cannot hold them', () => {
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
    expect([writer.flush(), sync.isReduced(task), reported.length, clock.pending]).toEqual([true, true, 1, 0])
    sync.put('commandTasks', 'a', task)
    expect(writer.flush()).toBe(true)
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
