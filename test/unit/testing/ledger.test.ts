/** Delivery logs: the verdict finds every kind of problem, a sound log is clean, and a recorder logs what a host does. */
import { describe, expect, it } from 'vitest'
import { createAgentTasks } from 'agent-tasks'
import { AsyncTaskManager } from 'agent-tasks'
import { createManualClock, runUntilSettled } from 'agent-tasks/testing'
import { checkDeliveryLog, parseDeliveryLog, recordDeliveryLog } from '../../../src/testing/ledger.js'

const acceptIn = (): Promise<void> => Promise.resolve()

const registered = (taskId: string, at = 0) => ({ type: 'registered', at, taskId, owner: 'main' })
const settled = (taskId: string, at = 1, owes = true) => ({ type: 'settled', at, taskId, status: 'completed', owes })
const of = (type: string, taskIds: string[], deliveryId?: string, at = 2) => ({ type, at, taskIds, deliveryId })
const pruned = (taskId: string, at = 3) => ({ type: 'pruned', at, taskId })
const turn = (taskIds: string[], deliveryId: string) => ({
  ...of('turn-started', taskIds, deliveryId),
  owner: 'main',
})
const a = [registered('a'), settled('a')]

const problemsOf = (log: readonly object[], options = {}) => {
  const { isClean, counts, ...problems } = checkDeliveryLog(log, options)
  const found = Object.entries(problems).flatMap(([kind, list]) =>
    list.map(({ taskId, message }) => `${kind}: ${taskId} ${message}`),
  )
  expect(isClean).toBe(found.length === 0)
  return found
}

describe('the verdict on a log', () => {
  it.each<[string, readonly object[], string[]]>([
    [
      'of a result delivered once',
      [...a, of('leased', ['a'], 'd1'), of('accepted', ['a'], 'd1'), of('acknowledged', ['a'], 'd1'), pruned('a')],
      [],
    ],
    [
      'of a result that was returned, and then delivered',
      [
        ...a,
        of('leased', ['a'], 'd1'),
        of('returned', ['a'], 'd1'),
        of('leased', ['a'], 'd2'),
        of('acknowledged', ['a'], 'd2'),
      ],
      [],
    ],
    [
      'F11: of a result that the host asked for once more',
      [...a, of('acknowledged', ['a'], 'd1'), of('repeated', ['a'], 'd1'), of('acknowledged', ['a'], 'd2')],
      [],
    ],
    ['of a task that owes nothing', [registered('a'), settled('a', 1, false), pruned('a')], []],
    ['of a result whose owner was released', [...a, of('dropped', ['a'])], []],
    [
      'of an id that is used again after its record was pruned',
      [
        ...a,
        of('acknowledged', ['a']),
        pruned('a'),
        registered('a', 4),
        settled('a', 5),
        of('accepted', ['a'], 'd', 6),
      ],
      [],
    ],
    [
      'of a result that was pruned while it was owed',
      [...a, pruned('a')],
      ['lost: a was pruned before it was delivered'],
    ],
    [
      'of an acknowledged message that the agent did not accept',
      [...a, of('leased', ['a'], 'd'), turn(['a'], 'd'), of('acknowledged', ['a'], 'd')],
      ['lost: a was acknowledged, although the agent had not accepted it'],
    ],
    [
      'of a result delivered twice',
      [...a, of('accepted', ['a'], 'd1'), of('accepted', ['a'], 'd2')],
      ['duplicated: a was delivered 2 times'],
    ],
    [
      'of a result in two messages at one time',
      [...a, of('leased', ['a'], 'd1'), of('leased', ['a'], 'd2'), of('accepted', ['a'], 'd2')],
      ['duplicated: a was leased by d2 while d1 carried it'],
    ],
    [
      'of a result accepted before its task ended',
      [registered('a'), of('accepted', ['a'])],
      ['outOfOrder: a was accepted before it ended'],
    ],
    [
      'of a task that was never registered',
      [of('accepted', ['a'])],
      ['outOfOrder: a was accepted before it was registered'],
    ],
    ['of a task that ended twice', [...a, settled('a'), of('accepted', ['a'])], ['outOfOrder: a ended twice']],
    [
      'of an id that two tasks have at one time',
      [...a, of('accepted', ['a']), registered('a', 2)],
      ['outOfOrder: a was registered again before its record was pruned'],
    ],
    [
      'of an entry after the record was pruned',
      [...a, of('accepted', ['a']), pruned('a'), of('acknowledged', ['a'], 'd', 4)],
      ['duplicated: a was delivered 2 times', 'outOfOrder: a was acknowledged after its record was pruned'],
    ],
    [
      'of times that go back',
      [registered('a', 5000), settled('a', 3999), of('accepted', ['a'], 'd', 6000)],
      ['outOfOrder: a has an entry with the time 3999 after an entry with the time 5000'],
    ],
    ['of a clock that was adjusted', [registered('a', 5000), settled('a', 4000), of('accepted', ['a'], 'd', 4500)], []],
    [
      'of a message with its results in the wrong order',
      [...a, registered('b', 1), settled('b', 2), turn(['b', 'a'], 'd'), of('accepted', ['b', 'a'], 'd')],
      ['outOfOrder: a comes after a result that ended later, in the same message'],
    ],
    ['of a result without a wake-up', a, ['stranded: a is owed to main since 1, and main has no later wake-up']],
    [
      'of a lease that never ends',
      [...a, of('leased', ['a'], 'd')],
      ['stranded: a is leased by d for main since 2, and main has no later wake-up'],
    ],
    ['of a result with a wake-up', [...a, { type: 'wake-up', at: 2, owner: 'main', dueAt: 9 }], []],
    [
      'of a result whose owner has no wake-up',
      [...a, { type: 'wake-up', at: 2, owner: 'sub', dueAt: 9 }],
      ['stranded: a is owed to main since 1, and main has no later wake-up'],
    ],
    [
      'of a result that moved to an owner with a wake-up',
      [...a, { type: 'moved', at: 2, taskId: 'a', owner: 'sub' }, { type: 'wake-up', at: 2, owner: 'sub', dueAt: 9 }],
      [],
    ],
  ])('%s', (_, log, problems) => {
    expect(problemsOf(log)).toEqual(problems)
  })

  it('allows results that have been owed for less than the grace', () => {
    expect(problemsOf(a, { now: 30, graceMs: 60 })).toEqual([])
    expect(problemsOf(a, { now: 90, graceMs: 60 })).toHaveLength(1)
    const returned = [...a, of('leased', ['a'], 'd'), of('returned', ['a'], 'd', 1000)]
    expect(problemsOf(returned, { now: 1050, graceMs: 100 })).toEqual([])
    expect(problemsOf(returned, { now: 1101, graceMs: 100 })).toEqual([
      'stranded: a is owed to main since 1000, and main has no later wake-up',
    ])
  })

  it('can allow no step back of the clock', () => {
    const log = [registered('a', 5), settled('a', 4), of('accepted', ['a'], 'd', 6)]
    expect(problemsOf(log, { clockStepMs: 0 })).toEqual([
      'outOfOrder: a has an entry with the time 4 after an entry with the time 5',
    ])
    expect(() => checkDeliveryLog([], { clockStepMs: -1 })).toThrow('options.clockStepMs: got -1, expected at least 0.')
  })

  it('reads lines of JSON, and names an invalid one', () => {
    const text = `${JSON.stringify(registered('a'))}\n\n${JSON.stringify({ ...settled('a'), note: 'ignored' })}\n`
    expect(parseDeliveryLog(text)).toEqual(a)
    expect(() => parseDeliveryLog(`${text}{`)).toThrow('line 4: got "{", expected an entry as JSON.')
    expect(() => parseDeliveryLog([{ ...registered('a'), at: 'now' }])).toThrow(
      'log[0].at: got "now", expected a number.',
    )
    expect(() => checkDeliveryLog([{ type: 'gone' }])).toThrow('log[0].type: got "gone"')
    expect(() => checkDeliveryLog([], { graceMs: -1 })).toThrow('options.graceMs: got -1, expected at least 0.')
  })
})

describe('a recorder', () => {
  const run = { subagentName: 'helper', goalPrompt: 'help' }

  it('has a clean log of a live host with accepted and refused turns, waits and pruning', async () => {
    const clock = createManualClock()
    const tasks = createAgentTasks({ clock, maxAsyncTasks: 1, onError: () => undefined })
    const manager = tasks.getAsyncTaskManager()
    manager.registerTask({ id: 'before', ...run })
    manager.completeTask('before', {})
    const lines: string[] = []
    const recorder = recordDeliveryLog(tasks, { clock, onEntry: (entry) => lines.push(JSON.stringify(entry)) })
    let turns = 0
    tasks.setupAsyncTaskAutoTrigger(
      () => false,
      recorder.wrapTurn(async () => {
        if ((turns += 1) === 1) throw new Error('refused')
      }),
    )
    await runUntilSettled(manager.onIdle(), clock)
    for (const id of ['a', 'b', 'c']) {
      manager.registerTask({ id, ...run })
      if (id === 'c') void manager.waitFor(['c'])
      manager.completeTask(id, {})
      await runUntilSettled(manager.onIdle(), clock)
    }
    expect(recorder.check()).toMatchObject({ isClean: true, counts: { tasks: 4, owed: 4, delivered: 4 } })
    expect(recorder.entries.map(({ type }) => type)).toContain('returned')
    expect(recorder.entries.map(({ type }) => type)).toContain('pruned')
    expect(`${lines.join('\n')}\n`).toBe(String(recorder))
    expect(checkDeliveryLog(String(recorder)).isClean).toBe(true)
    recorder.stop()
    await tasks.dispose()
    expect(recorder.entries).toHaveLength(lines.length)
  })

  it('writes times that never go back, though the clock does, and past tasks in the order of their times', () => {
    const times = [10, 20, 30, 40, 39, 41, 38]
    let latest = 0
    const clock = { ...createManualClock(), now: () => (latest = times.shift() ?? latest) }
    const manager = new AsyncTaskManager({ clock })
    manager.registerTask({ id: 'a', ...run })
    manager.completeTask('a', {})
    manager.registerTask({ id: 'b', ...run })
    const recorder = recordDeliveryLog(manager, { clock })
    manager.completeTask('b', {})
    manager.lease()?.acknowledge()
    const dates = recorder.entries.map(({ at }) => at)
    expect(recorder.entries.map(({ type }) => type).slice(0, 4)).toEqual([
      'registered',
      'settled',
      'registered',
      'settled',
    ])
    expect(dates).toEqual([...dates].sort((one, other) => one - other))
    expect(recorder.check({ clockStepMs: 0 })).toMatchObject({ isClean: true, counts: { tasks: 2, delivered: 2 } })
  })

  it('finds a result that the host acknowledges without its agent, and one without a wake-up', () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    const recorder = recordDeliveryLog(manager, { clock })
    for (const id of ['a', 'b', 'c']) {
      manager.registerTask({ id, ...run })
      manager.completeTask(id, {})
    }
    const lease = manager.lease()
    const { deliveryId = '', tasks = [] } = lease ?? {}
    const taskIds = tasks.map(({ id }) => id)
    const signal = new AbortController().signal
    // The agent never accepts it, and the host acknowledges all the same.
    void recorder.wrapTurn(() => new Promise(() => undefined))('', { deliveryId, taskIds, signal, acceptIn })
    lease?.acknowledge()
    manager.registerTask({ id: 'd', ...run })
    manager.failTask('d', 'no')
    const { lost, stranded } = recorder.check()
    expect(lost.map(({ taskId }) => taskId)).toEqual(['a', 'b', 'c'])
    expect(stranded.map(({ taskId }) => taskId)).toEqual(['d'])
  })
})

describe('the recorded entries', () => {
  const input = (id: string, owner = 'main') => ({ id, owner, subagentName: 's', goalPrompt: 'g' })
  const kinds = (entries: readonly { readonly type: string }[]) => entries.map(({ type }) => type)

  it('show a turn that returns at once as accepted', () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    manager.registerTask(input('a', 'other'))
    const recorder = recordDeliveryLog(manager, { clock })
    const wrapped = recorder.wrapTurn(() => 'accepted')
    const delivery = { deliveryId: 'd', taskIds: ['a'], signal: new AbortController().signal, acceptIn }
    expect(wrapped('text', delivery)).toBe('accepted')
    expect(recorder.entries.slice(-2)).toEqual([
      { type: 'turn-started', at: 0, owner: 'other', deliveryId: 'd', taskIds: ['a'] },
      { type: 'accepted', at: 0, deliveryId: 'd', taskIds: ['a'] },
    ])
  })

  it('show the results of a released owner, with an heir and without', () => {
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    manager.registerTask(input('delivered'))
    manager.completeTask('delivered', {})
    manager.markNotified('delivered')
    const recorder = recordDeliveryLog(manager)
    manager.registerTask(input('a', 'guest'))
    manager.completeTask('a', {})
    manager.releaseOwner('guest', { to: 'main' })
    manager.releaseOwner('main')
    expect(kinds(recorder.entries)).toEqual([
      ...['registered', 'settled', 'acknowledged', 'registered', 'settled', 'moved', 'dropped'],
    ])
    expect(recorder.check()).toMatchObject({ isClean: true })
    recorder.stop()
    const recorded = recorder.entries.length
    manager.registerTask(input('late'))
    void recorder.wrapTurn(() => undefined)('text', {
      acceptIn,
      deliveryId: 'd',
      taskIds: [],
      signal: new AbortController().signal,
    })
    expect(recorder.entries).toHaveLength(recorded)
  })
})
