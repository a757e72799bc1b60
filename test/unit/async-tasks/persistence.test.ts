/** What a store holds of tasks and messages after each change, and which results may still have to be sent again. */
import { expect, it, vi } from 'vitest'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { Persistence } from '../../../src/async-tasks/recovery/persistence.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { breakableStore } from '../../support/breakable-store.js'

function entryOf(id: string, more: object = {}): TaskEntry {
  const record = {
    id,
    owner: 'main',
    subagentName: 'agent',
    goalPrompt: 'goal',
    status: 'completed',
    delivery: 'leased',
    seq: 2,
    launchedAt: 100,
    completedAt: 200,
    output: {},
    ...more,
  }
  return { record, serial: 7, lease: undefined } as unknown as TaskEntry
}

function setUp(store = memoryStore()) {
  const clock = createManualClock(1_000)
  const confirmed: string[] = []
  const persistence = new Persistence({
    store,
    clock,
    report: () => undefined,
    outbox: { batch: (run) => run(), mark: () => undefined, release: () => undefined },
    onConfirmed: (entries) => confirmed.push(...entries.map(({ record }) => record.id)),
  })
  const deliveries = async () => {
    await persistence.stored()
    return store.contents().deliveries.map(({ id, state, taskIds }) => `${id} ${state} ${taskIds.join(' ')}`)
  }
  const tasks = async () => {
    await persistence.stored()
    return store.contents().tasks
  }
  const carry = (id: string, ...entries: TaskEntry[]): void => {
    for (const entry of entries) persistence.onCarried(id, entry)
  }
  const status = (entry: TaskEntry, from: string | null, to: string): void => {
    entry.record = { ...entry.record, status: to } as TaskEntry['record']
    persistence.note({
      type: 'transition',
      entry,
      transition: { kind: 'status', taskId: entry.record.id, from, to },
    } as never)
  }
  return { store, clock, persistence, confirmed, deliveries, tasks, carry, status }
}

it('K5: a result is held until each message that carries it is confirmed or given back, however often one names it', () => {
  const { persistence, carry, confirmed } = setUp()
  const [a, b] = [entryOf('a'), entryOf('b')]
  carry('first', a, a, b)
  carry('second', a)
  persistence.onReleased('first')
  expect([a, b].map((entry) => persistence.isCarried(entry))).toEqual([true, false])
  persistence.onAccepted('second')
  expect(persistence.isCarried(a)).toBe(true)
  expect(persistence.confirmDelivery('second')).toBe(true)
  expect(persistence.isCarried(a)).toBe(false)
  expect(persistence.confirmDelivery('second')).toBe(false)
  expect(confirmed).toEqual(['a'])
})

it('K5: a result that another message carries is not offered when one of them is confirmed', () => {
  const { persistence, carry, confirmed } = setUp()
  const [a, b] = [entryOf('a'), entryOf('b')]
  carry('first', a, b)
  persistence.onAccepted('first')
  carry('second', a)
  persistence.confirmDelivery('first')
  expect(confirmed).toEqual(['b'])
})

it('K5: an accepted message confirms the earlier ones of its owner, and none of another owner', async () => {
  const { persistence, carry, deliveries, confirmed } = setUp()
  for (const [id, owner] of [
    ['a', 'main'],
    ['b', 'other'],
  ] as const) {
    carry(id, entryOf(`task-${id}`, { owner }))
    persistence.onAccepted(id)
  }
  expect(await deliveries()).toEqual(['a accepted task-a', 'b accepted task-b'])
  carry('c', entryOf('task-c'))
  expect(await deliveries()).toEqual(['a accepted task-a', 'b accepted task-b', 'c sent task-c'])
  persistence.onAccepted('c')
  expect(await deliveries()).toEqual(['b accepted task-b', 'c accepted task-c'])
  expect(confirmed).toEqual(['task-a'])
})

it('K5: two messages that are accepted in one tick confirm each other not', async () => {
  const { persistence, carry, deliveries } = setUp()
  carry('a', entryOf('task-a'))
  carry('b', entryOf('task-b'))
  await deliveries()
  persistence.onAccepted('a')
  persistence.onAccepted('b')
  persistence.onAccepted('b')
  expect(await deliveries()).toEqual(['a accepted task-a', 'b accepted task-b'])
})

it('K5: what a message did not carry after all, and possible repeats, need no confirmation', async () => {
  const { persistence, carry, deliveries, confirmed } = setUp()
  const [a, b, repeat] = [entryOf('a'), entryOf('b'), entryOf('c', { isRepeat: true })]
  const again = entryOf('d', { isRepeat: true, notifiedAt: 5 })
  carry('m', a, b, repeat, again)
  persistence.onAccepted('m', new Set([a, repeat, again]))
  expect(await deliveries()).toEqual(['m accepted a d'])
  expect([a, b, repeat, again].map((entry) => persistence.isCarried(entry))).toEqual([true, false, false, true])
  carry('n', entryOf('e', { owner: 'other' }))
  persistence.onAccepted('n', new Set())
  expect(await deliveries()).toEqual(['m accepted a d'])
  expect(confirmed).toEqual([])
})

it('K5: the messages that count as confirmed are those that were accepted first, not those that were sent first', async () => {
  const { persistence, carry, deliveries, clock } = setUp()
  for (const id of ['a', 'b']) carry(id, entryOf(`task-${id}`, { owner: id }))
  persistence.onAccepted('b')
  persistence.onAccepted('a')
  expect(await deliveries()).toHaveLength(2)
  for (let nth = 0; nth < 19_999; nth += 1) {
    carry(`m${nth}`, entryOf(`t${nth}`, { owner: `o${nth}` }))
    persistence.onAccepted(`m${nth}`)
  }
  expect(persistence.confirmDelivery('b')).toBe(false)
  expect(await deliveries()).toHaveLength(20_000)
  expect(persistence.confirmDelivery('a')).toBe(true)
  clock.advance(86_400_000)
  carry('late', entryOf('late', { owner: 'late' }))
  persistence.onAccepted('late')
  expect(await deliveries()).toHaveLength(20_000)
  clock.advance(1)
  carry('later', entryOf('later', { owner: 'later' }))
  persistence.onAccepted('later')
  expect(await deliveries()).toEqual(['late accepted late', 'later accepted later'])
})

it('K5: a result that the host has marked leaves every message, and a message without results goes', async () => {
  const { persistence, carry, deliveries } = setUp()
  const [a, b] = [entryOf('a'), entryOf('b')]
  carry('one', a)
  carry('two', a, b)
  expect(await deliveries()).toEqual(['one sent a', 'two sent a b'])
  persistence.onMarked(a)
  expect(await deliveries()).toEqual(['two sent b'])
  expect([a, b].map((entry) => persistence.isCarried(entry))).toEqual([false, true])
})

it('K5: an owner that has gone confirms what it has accepted, and nothing else', async () => {
  const { persistence, carry, deliveries } = setUp()
  for (const [id, owner] of [
    ['a', 'main'],
    ['b', 'main'],
    ['c', 'other'],
  ] as const) {
    carry(id, entryOf(`task-${id}`, { owner }))
  }
  for (const id of ['a', 'c']) persistence.onAccepted(id)
  persistence.onReleased('a')
  persistence.confirmOwner('main')
  expect(await deliveries()).toEqual(['b sent task-b', 'c accepted task-c'])
  persistence.confirmOwner()
  expect(await deliveries()).toEqual(['b sent task-b'])
  persistence.keepSent()
  persistence.onReleased('b')
  expect(await deliveries()).toEqual(['b sent task-b'])
  persistence.forgetDelivery('b')
  persistence.forgetDelivery('of an earlier process')
  expect(await deliveries()).toEqual([])
})

it('K6: the next run of a task has neither the program of the last one, nor its end of time, nor its wait', async () => {
  const { persistence, tasks, status, clock } = setUp()
  const entry = entryOf('a', { status: 'running', timeoutMs: 500, completedAt: undefined })
  const program = { identity: { pid: 5, startedAt: 'then' }, token: 't' } as never
  persistence.launch(entry, { attempt: 1, deadlineAt: 600, run: { graceMs: 3, params: { for: 'a' } } })
  await persistence.saveProgram(entry, program)
  persistence.note({ type: 'limit', state: 'stopping', entry } as never)
  expect(persistence.isPending(entry)).toBe(true)
  expect(await tasks()).toMatchObject([
    { attempt: 1, deadlineAt: 600, run: { graceMs: 3, params: { for: 'a' }, isOverdue: true, program } },
  ])
  persistence.setDelay(entry, 250)
  status(entry, 'running', 'queued')
  entry.record = { ...entry.record, attempt: 2 }
  status(entry, 'running', 'queued')
  const [waiting] = await tasks()
  expect(waiting?.run).toEqual({ graceMs: 3, params: { for: 'a' }, notBefore: 1_250, delayMs: 250, place: 7 })
  expect(waiting).toMatchObject({ attempt: 2, status: 'queued' })
  expect(waiting).not.toHaveProperty('deadlineAt')
  clock.advance(250)
  entry.record = { ...entry.record, startedAt: 1_250 }
  status(entry, 'queued', 'running')
  const [started] = await tasks()
  expect(started?.run).toEqual({ graceMs: 3, params: { for: 'a' }, place: 7 })
  expect(started).toMatchObject({ attempt: 2, status: 'running', deadlineAt: 1_750 })
})

it('K6: the row of an ended task has its program and the message that delivered it, and nothing else of its run', async () => {
  const { persistence, tasks, status } = setUp()
  const entry = entryOf('a', { status: 'running' })
  const program = { identity: { pid: 5, startedAt: 'then' }, token: 't' } as never
  persistence.launch(entry, { attempt: 1, deadlineAt: undefined, run: { graceMs: 3, key: 'k', program } })
  expect(persistence.runOf(entry).key).toBe('k')
  entry.deliveredBy = 'm'
  status(entry, 'running', 'completed')
  expect((await tasks())[0]?.run).toEqual({ program })
  expect((await tasks())[0]?.record).not.toHaveProperty('deliveredBy')
  entry.record = { ...entry.record, delivery: 'delivered' }
  persistence.noteChange(entry)
  expect((await tasks())[0]).toMatchObject({ delivery: 'delivered', record: { deliveredBy: 'm' } })
  persistence.note({ type: 'transition', entry, transition: { kind: 'history', taskId: 'a' } } as never)
  persistence.forget('a')
  // It goes with the next write.
  expect([persistence.isSettled(), (await tasks()).length]).toEqual([true, 1])
  persistence.launch(entryOf('b', { status: 'running' }), { attempt: 1, deadlineAt: undefined, run: {} })
  expect((await tasks()).map(({ id }) => id)).toEqual(['b'])
})

it('K6: a program that cannot be stored is not that of the run', async () => {
  const { store, state } = breakableStore()
  const { persistence } = setUp(store as never)
  const entry = entryOf('a', { status: 'running' })
  persistence.launch(entry, { attempt: 1, deadlineAt: undefined, run: {} })
  state.isBroken = true
  const program = { identity: { pid: 5, startedAt: 'then' }, token: 't' } as never
  await expect(persistence.saveProgram(entry, program)).rejects.toThrow('the disk is full')
  expect(persistence.runOf(entry).program).toBeUndefined()
  await persistence.close()
})

it('K4: what the store held is taken once, and what has not changed is not written again', async () => {
  const write = vi.fn(() => Promise.resolve())
  const filled = memoryStore()
  const first = setUp(filled)
  first.persistence.launch(entryOf('a', { status: 'running' }), { attempt: 1, deadlineAt: undefined, run: {} })
  await first.persistence.stored()
  const copy = filled.copy()
  const { persistence } = setUp(Object.assign(copy, { write }))
  const { tasks } = persistence.takeContents()
  expect(tasks.map(({ id }) => id)).toEqual(['a'])
  expect(persistence.takeContents()).toEqual({ tasks: [], deliveries: [], featureStates: [] })
  persistence.restore(entryOf('a'), { ...tasks[0]!, run: {} }, false)
  expect(persistence.isSettled()).toBe(true)
  persistence.restore(entryOf('a'), { ...tasks[0]!, run: {} }, true)
  expect(persistence.isSettled()).toBe(false)
})
