/** The verdict on a log of deliveries: each way in which it can be wrong is found, and what is right is clean. */
import { describe, expect, it } from 'vitest'
import { createAgentTasks } from '../../../src/host/agent-tasks.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import {
  checkDeliveryLedger,
  createManualClock,
  parseDeliveryLog,
  recordDeliveryLedger,
  runUntilSettled,
} from '../../../src/testing/index.js'

const registered = (taskId: string, at = 0) => ({ type: 'registered', at, taskId, owner: 'main' })
const settled = (taskId: string, at = 1, owes = true) => ({ type: 'settled', at, taskId, status: 'completed', owes })
const of = (type: string, taskIds: string[], deliveryId?: string, at = 2) => ({ type, at, taskIds, deliveryId })
const pruned = (taskId: string, at = 3) => ({ type: 'pruned', at, taskId })
const woken = (taskIds: string[], deliveryId: string) => ({ ...of('woken', taskIds, deliveryId), owner: 'main' })
const a = [registered('a'), settled('a')]

const tell = (log: readonly object[], options = {}) => {
  const { isClean, counts, ...problems } = checkDeliveryLedger(log, options)
  const found = Object.entries(problems).flatMap(([kind, list]) =>
    list.map(({ taskId, what }) => `${kind}: ${taskId} ${what}`),
  )
  expect(isClean).toBe(found.length === 0)
  return found
}

describe('a log', () => {
  it.each<[string, readonly object[], string[]]>([
    [
      'of what was told once',
      [...a, of('leased', ['a'], 'd1'), of('told', ['a'], 'd1'), of('acknowledged', ['a'], 'd1'), pruned('a')],
      [],
    ],
    [
      'of what was returned, and told then',
      [
        ...a,
        of('leased', ['a'], 'd1'),
        of('returned', ['a'], 'd1'),
        of('leased', ['a'], 'd2'),
        of('acknowledged', ['a'], 'd2'),
      ],
      [],
    ],
    ['of what owes nothing', [registered('a'), settled('a', 1, false), pruned('a')], []],
    ['of what its owner gave up', [...a, of('dropped', ['a'])], []],
    [
      'of an id that is used again',
      [...a, of('acknowledged', ['a']), pruned('a'), registered('a', 4), settled('a', 5), of('told', ['a'], 'd', 6)],
      [],
    ],
    ['of what was forgotten untold', [...a, pruned('a')], ['lost: a was pruned before it was told']],
    [
      'of what the ledger believes against the host',
      [...a, of('leased', ['a'], 'd'), woken(['a'], 'd'), of('acknowledged', ['a'], 'd')],
      ['lost: a was acknowledged, and the agent had not accepted it'],
    ],
    [
      'of what was told twice',
      [...a, of('told', ['a'], 'd1'), of('told', ['a'], 'd2')],
      ['duplicated: a was told 2 times'],
    ],
    [
      'of what two messages carry',
      [...a, of('leased', ['a'], 'd1'), of('leased', ['a'], 'd2'), of('told', ['a'], 'd2')],
      ['duplicated: a was leased by d2 while d1 carried it'],
    ],
    ['of what was told too early', [registered('a'), of('told', ['a'])], ['outOfOrder: a was told before it ended']],
    ['of what was never registered', [of('told', ['a'])], ['outOfOrder: a was told before it was registered']],
    ['of what ended twice', [...a, settled('a'), of('told', ['a'])], ['outOfOrder: a ended twice']],
    [
      'of an id that is used twice at once',
      [...a, of('told', ['a']), registered('a', 2)],
      ['outOfOrder: a was registered again before its record was pruned'],
    ],
    [
      'of what came after the end',
      [...a, of('told', ['a']), pruned('a'), of('acknowledged', ['a'], 'd', 4)],
      ['duplicated: a was told 2 times', 'outOfOrder: a was acknowledged after its record was pruned'],
    ],
    [
      'of time that went back',
      [registered('a', 5000), settled('a', 3999), of('told', ['a'], 'd', 6000)],
      ['outOfOrder: a the entry is of 3999, after one of 5000'],
    ],
    ['of a clock that was set right', [registered('a', 5000), settled('a', 4000), of('told', ['a'], 'd', 4500)], []],
    [
      'of a message in the wrong order',
      [...a, registered('b', 1), settled('b', 2), woken(['b', 'a'], 'd'), of('told', ['b', 'a'], 'd')],
      ['outOfOrder: a comes after a result that ended later, in one message'],
    ],
    ['of what is left lying', a, ['stranded: a is owed to main since 1, and nothing will tell it']],
    [
      'of what is on its way for ever',
      [...a, of('leased', ['a'], 'd')],
      ['stranded: a is on its way in d to main since 2, and nothing will tell it'],
    ],
    ['of what will be looked at', [...a, { type: 'wake-up', at: 2, owner: 'main', dueAt: 9 }], []],
    [
      'of what nobody will look at',
      [...a, { type: 'wake-up', at: 2, owner: 'sub', dueAt: 9 }],
      ['stranded: a is owed to main since 1, and nothing will tell it'],
    ],
    [
      'of what moved to an owner that is woken',
      [...a, { type: 'moved', at: 2, taskId: 'a', owner: 'sub' }, { type: 'wake-up', at: 2, owner: 'sub', dueAt: 9 }],
      [],
    ],
  ])('%s', (_, log, problems) => {
    expect(tell(log)).toEqual(problems)
  })

  it('of production may hold what has not had its time yet', () => {
    expect(tell(a, { now: 30, graceMs: 60 })).toEqual([])
    expect(tell(a, { now: 90, graceMs: 60 })).toHaveLength(1)
  })

  it('of a clock that is known to go on may allow no step back', () => {
    const log = [registered('a', 5), settled('a', 4), of('told', ['a'], 'd', 6)]
    expect(tell(log, { clockStepMs: 0 })).toEqual(['outOfOrder: a the entry is of 4, after one of 5'])
    expect(() => checkDeliveryLedger([], { clockStepMs: -1 })).toThrow(
      'options.clockStepMs: got -1, expected at least 0.',
    )
  })

  it('is read from lines of JSON, and one that does not fit is named', () => {
    const text = `${JSON.stringify(registered('a'))}\n\n${JSON.stringify({ ...settled('a'), note: 'ignored' })}\n`
    expect(parseDeliveryLog(text)).toEqual(a)
    expect(() => parseDeliveryLog(`${text}{`)).toThrow('line 4: got "{", expected an entry as JSON.')
    expect(() => parseDeliveryLog([{ ...registered('a'), at: 'now' }])).toThrow(
      'log[0].at: got "now", expected a number.',
    )
    expect(() => checkDeliveryLedger([{ type: 'gone' }])).toThrow('log[0].type: got "gone"')
    expect(() => checkDeliveryLedger([], { graceMs: -1 })).toThrow('options.graceMs: got -1, expected at least 0.')
  })
})

describe('a recorder', () => {
  const run = { subagentName: 'helper', goalPrompt: 'help' }

  it('proves a live host: turns that are accepted, refused and cut short, waits and pruning', async () => {
    const clock = createManualClock()
    const tasks = createAgentTasks({ clock, maxAsyncTasks: 1, onError: () => undefined })
    const manager = tasks.getAsyncTaskManager()
    manager.registerTask({ id: 'before', ...run })
    manager.completeTask('before', {})
    const lines: string[] = []
    const ledger = recordDeliveryLedger(tasks, { clock, onEntry: (entry) => lines.push(JSON.stringify(entry)) })
    let turns = 0
    tasks.setupAsyncTaskAutoTrigger(
      () => false,
      ledger.wrapTurn(async () => {
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
    expect(ledger.check()).toMatchObject({ isClean: true, counts: { tasks: 4, owing: 4, told: 4 } })
    expect(ledger.entries.map(({ type }) => type)).toContain('returned')
    expect(ledger.entries.map(({ type }) => type)).toContain('pruned')
    expect(`${lines.join('\n')}\n`).toBe(String(ledger))
    expect(checkDeliveryLedger(String(ledger)).isClean).toBe(true)
    ledger.stop()
    await tasks.dispose()
    expect(ledger.entries).toHaveLength(lines.length)
  })

  it('writes times that never go back, though the clock does, and what was there in the order it happened', () => {
    const times = [10, 20, 30, 40, 39, 41, 38]
    let latest = 0
    const clock = { ...createManualClock(), now: () => (latest = times.shift() ?? latest) }
    const manager = new AsyncTaskManager({ clock })
    manager.registerTask({ id: 'a', ...run })
    manager.completeTask('a', {})
    manager.registerTask({ id: 'b', ...run })
    const ledger = recordDeliveryLedger(manager, { clock })
    manager.completeTask('b', {})
    manager.lease()?.acknowledge()
    const dates = ledger.entries.map(({ at }) => at)
    expect(ledger.entries.map(({ type }) => type).slice(0, 4)).toEqual([
      'registered',
      'settled',
      'registered',
      'settled',
    ])
    expect(dates).toEqual([...dates].sort((one, other) => one - other))
    expect(ledger.check({ clockStepMs: 0 })).toMatchObject({ isClean: true, counts: { tasks: 2, told: 2 } })
  })

  it('finds what a host marks as told that its agent never accepted, and what it leaves lying', () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    const ledger = recordDeliveryLedger(manager, { clock })
    for (const id of ['a', 'b', 'c']) {
      manager.registerTask({ id, ...run })
      manager.completeTask(id, {})
    }
    const lease = manager.lease()
    const { deliveryId = '', tasks = [] } = lease ?? {}
    const taskIds = tasks.map(({ id }) => id)
    const signal = new AbortController().signal
    // The agent never accepts it, and the host acknowledges all the same.
    void ledger.wrapTurn(() => new Promise(() => undefined))('', { deliveryId, taskIds, signal })
    lease?.acknowledge()
    manager.registerTask({ id: 'd', ...run })
    manager.failTask('d', 'no')
    const { lost, stranded } = ledger.check()
    expect(lost.map(({ taskId }) => taskId)).toEqual(['a', 'b', 'c'])
    expect(stranded.map(({ taskId }) => taskId)).toEqual(['d'])
  })
})

describe('what is recorded', () => {
  const input = (id: string, owner = 'main') => ({ id, owner, subagentName: 's', goalPrompt: 'g' })
  const kinds = (entries: readonly { readonly type: string }[]) => entries.map(({ type }) => type)

  it('says of a turn that answers at once that it was accepted', () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    manager.registerTask(input('a', 'other'))
    const ledger = recordDeliveryLedger(manager, { clock })
    const turn = ledger.wrapTurn(() => 'accepted')
    const delivery = { deliveryId: 'd', taskIds: ['a'], signal: new AbortController().signal }
    expect(turn('text', delivery)).toBe('accepted')
    expect(ledger.entries.slice(-2)).toEqual([
      { type: 'woken', at: 0, owner: 'other', deliveryId: 'd', taskIds: ['a'] },
      { type: 'told', at: 0, deliveryId: 'd', taskIds: ['a'] },
    ])
  })

  it('says what becomes of the tasks of an owner that goes away, with an heir and without', () => {
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    manager.registerTask(input('told'))
    manager.completeTask('told', {})
    manager.markNotified('told')
    const ledger = recordDeliveryLedger(manager)
    manager.registerTask(input('a', 'guest'))
    manager.completeTask('a', {})
    manager.releaseOwner('guest', { to: 'main' })
    manager.releaseOwner('main')
    expect(kinds(ledger.entries)).toEqual([
      ...['registered', 'settled', 'acknowledged', 'registered', 'settled', 'moved', 'dropped'],
    ])
    expect(ledger.check()).toMatchObject({ isClean: true })
    ledger.stop()
    const recorded = ledger.entries.length
    manager.registerTask(input('late'))
    void ledger.wrapTurn(() => undefined)('text', {
      deliveryId: 'd',
      taskIds: [],
      signal: new AbortController().signal,
    })
    expect(ledger.entries).toHaveLength(recorded)
  })
})
