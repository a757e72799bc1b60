/** The texts that the model reads about its background tasks (seed 003), and the effects of leasing one. */
import { describe, expect, it } from 'vitest'
import type { AsyncTaskManagerOptions } from '../../../src/async-tasks/manager-options.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import {
  AsyncTaskReminderService,
  NOTIFICATION_NOTICE,
  type ReminderServiceOptions,
} from '../../../src/features/delivery/reminder-service.js'
import { InvalidSettingError } from '../../../src/errors.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function setUp(options?: ReminderServiceOptions) {
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock: createManualClock(1_000) })
  const reminders = new AsyncTaskReminderService(manager, options)
  const register = (id: string, owner = 'main'): void => {
    manager.registerTask({ id, owner, subagentName: 'researcher', goalPrompt: 'search' })
  }
  const complete = (id: string, output = {}, owner?: string): void => {
    register(id, owner)
    manager.completeTask(id, output)
  }
  return { manager, reminders, register, complete }
}

describe('the status summary', () => {
  it('is empty without tasks', () => {
    const { reminders } = setUp()
    expect(reminders.generateStatusSummary()).toBe('')
  })

  it('lists every task with its status and the start of its id', () => {
    const { manager, reminders, register } = setUp()
    for (const id of ['aaaaaaaa1', 'bbbbbbbb2', 'cccccccc3', 'dddddddd4']) register(id)
    manager.completeTask('bbbbbbbb2', {})
    manager.failTask('cccccccc3', 'no luck')
    manager.cancelTask('dddddddd4')
    expect(reminders.generateStatusSummary()).toBe(
      [
        '[ASYNC TASKS: 4 total]',
        '[1] researcher - [RUNNING] (aaaaaaaa...)',
        '[2] researcher - [DONE] (bbbbbbbb...)',
        '[3] researcher - [FAILED] (cccccccc...)',
        '[4] researcher - [CANCELLED] (dddddddd...)',
      ].join('\n'),
    )
  })

  it('shows the shortest unique prefix of an id, among the ids of every owner', () => {
    const { reminders, register } = setUp()
    register('researcher-a1')
    register('researcher-b2', 'sub')
    expect(reminders.generateStatusSummary('sub')).toBe(
      '[ASYNC TASKS: 1 total]\n[1] researcher - [RUNNING] (researcher-b...)',
    )
    expect(reminders.generateStatusSummary('nobody')).toBe('')
  })
})

describe('the reminder', () => {
  it('is empty when nothing is owed and nothing runs', () => {
    const { manager, reminders, complete } = setUp()
    expect(reminders.generateReminder()).toBe('')
    complete('a')
    manager.markNotified('a')
    expect(reminders.generateReminder()).toBe('')
  })

  it('is headed by how the tasks ended', () => {
    const { manager, reminders, register, complete } = setUp()
    const heading = () => reminders.generateReminder().split('\n')[3]
    register('a')
    manager.failTask('a', 'no')
    expect(heading()).toBe('1 async task(s) failed:')
    complete('b', {})
    expect(heading()).toBe('2 async task(s) ended (1 completed, 1 failed):')
    manager.markNotified('a')
    expect(heading()).toBe('1 async task(s) completed:')
  })

  it('has the text of each owed result in the order of the ends, and the number of running tasks', () => {
    const { manager, reminders, register, complete } = setUp()
    register('a')
    complete('b', { terminate_reason: 'GOAL', emitted_vars: { found: 3 }, final_message: 'three', extra: true })
    manager.failTask('a', 'no luck')
    register('c')
    expect(reminders.generateReminder()).toBe(
      [
        '---',
        'System Note: Async Task Status',
        '',
        '2 async task(s) ended (1 completed, 1 failed):',
        '',
        `Task b (subagent 'researcher', goal "search"):`,
        '{',
        '  "agent_id": "b",',
        '  "terminate_reason": "GOAL",',
        '  "emitted_vars": {',
        '    "found": 3',
        '  },',
        '  "final_message": "three",',
        '  "other_fields": {',
        '    "extra": true',
        '  }',
        '}',
        '',
        `Task a (subagent 'researcher', goal "search"):`,
        '{',
        '  "agent_id": "a",',
        '  "status": "failed",',
        '  "error": "no luck"',
        '}',
        '',
        '1 async task(s) still running.',
        '---',
      ].join('\n'),
    )
  })

  it('has only the number of running tasks when nothing is owed', () => {
    const { reminders, register } = setUp()
    register('a')
    expect(reminders.generateReminder()).toBe(
      '---\nSystem Note: Async Task Status\n\n1 async task(s) still running.\n---',
    )
  })

  it('is about one owner if given, of all otherwise', () => {
    const { reminders, register, complete } = setUp()
    complete('a', {}, 'sub')
    register('b')
    expect(reminders.generateReminder('main')).not.toContain('completed')
    expect(reminders.generateReminder('sub')).not.toContain('running')
    expect(reminders.generateReminder()).toMatch(/1 async task\(s\) completed:[^]*1 async task\(s\) still running\./)
  })

  it('A5: leases nothing and marks nothing', () => {
    const { manager, reminders, complete } = setUp()
    complete('a')
    expect(reminders.generateReminder()).toBe(reminders.generateReminder())
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})

describe('a notification', () => {
  it('has the fields of a synchronous result, and a final message only if there is one', () => {
    const { manager, reminders, complete } = setUp()
    complete('a')
    expect(JSON.parse(reminders.formatCompletionNotification(manager.getTask('a')!))).toEqual({
      agent_id: 'a',
      emitted_vars: {},
    })
  })

  it('shows what else a run returned, where it cannot pass for the status', () => {
    const { manager, reminders, complete } = setUp()
    complete('a', { note: 'done', answer: 42, status: 'failed', agent_id: 'b' })
    expect(JSON.parse(reminders.formatCompletionNotification(manager.getTask('a')!))).toEqual({
      agent_id: 'a',
      emitted_vars: {},
      other_fields: { note: 'done', answer: 42, status: 'failed', agent_id: 'b' },
    })
  })

  it('says that a task was cancelled, and nothing of one that runs', () => {
    const { manager, reminders, register } = setUp()
    register('a')
    expect(reminders.formatCompletionNotification(manager.getTask('a')!)).toBe('')
    manager.cancelTask('a')
    expect(JSON.parse(reminders.formatCompletionNotification(manager.getTask('a')!))).toEqual({
      agent_id: 'a',
      status: 'cancelled',
    })
  })
})

describe('a leased reminder', () => {
  it('A6: holds exactly the tasks whose text it has, until it is accepted or refused', () => {
    const { manager, reminders, complete } = setUp()
    complete('a')
    const [, notification = ''] = reminders.generateReminder('main').split('completed:\n\n')
    const first = reminders.leaseReminder()
    complete('b')
    expect(first).toMatchObject({ taskIds: ['a'], deliveryId: expect.any(String) as string })
    expect(first?.text).toBe(
      [
        NOTIFICATION_NOTICE,
        '---',
        'System Note: Async Task Status',
        '',
        '1 async task(s) completed:',
        '',
        `Output of task a (subagent 'researcher', goal "search"):`,
        '```json',
        notification.replace(/^.*\n/, '').replace(/\n---$/, ''),
        '```',
        '---',
      ].join('\n'),
    )
    expect(reminders.generateReminder()).not.toContain('"a"')
    const second = reminders.leaseReminder()
    expect(second?.taskIds).toEqual(['b'])
    first?.acknowledge()
    second?.release()
    expect(manager.getPendingNotifications()).toMatchObject([{ id: 'b' }])
    expect(Object.isFrozen(first)).toBe(true)
    expect(Object.isFrozen(first?.taskIds)).toBe(true)
  })

  it('is undefined when nothing is owed to the owner, even if tasks run', () => {
    const { reminders, register, complete } = setUp()
    register('a')
    complete('b', {}, 'sub')
    expect(reminders.leaseReminder()).toBeUndefined()
    expect(reminders.leaseReminder({ owner: 'sub' })?.text).not.toContain('running')
  })

  it('A6: is refused while another exclusive lease of its owner is open', () => {
    const { reminders, complete } = setUp()
    complete('a')
    const first = reminders.leaseReminder({ exclusive: true })
    complete('b')
    expect(reminders.leaseReminder({ exclusive: true })).toBeUndefined()
    first?.acknowledge()
    expect(reminders.leaseReminder({ exclusive: true })?.taskIds).toEqual(['b'])
  })

  it('A7: keeps the record of what it cut until the rest was read', () => {
    const { manager, reminders, complete } = setUp({ maxMessageChars: 200 })
    manager.setMaxAsyncTasks(0)
    complete('long', { final_message: 'x'.repeat(1_000) })
    complete('short', { final_message: 'x' })
    const lease = reminders.leaseReminder()
    expect(lease?.text).toContain('[Cut after 200 of ')
    expect(lease?.text).toContain('"task_id":"long","action":"output"')
    expect(lease?.text).toContain('"final_message": "x"\n}')
    lease?.acknowledge()
    expect(manager.getAllTasks()).toMatchObject([{ id: 'long', delivery: 'delivered' }])
  })

  it('cuts only what is longer than maxMessageChars, which is 20000 by default', () => {
    const { reminders, complete } = setUp()
    complete('a', { final_message: 'x'.repeat(19_000) })
    expect(reminders.generateReminder()).not.toContain('[Cut ')
    reminders.markAllNotified()
    complete('b', { final_message: 'x'.repeat(20_000) })
    expect(reminders.generateReminder()).toContain('[Cut to a preview')
  })
})

describe('a message as a whole', () => {
  it('A5: has at most 20000 characters, and carries the oldest results; the others get the next messages', () => {
    const { manager, reminders, register, complete } = setUp()
    register('running')
    const ids = ['a', 'b', 'c', 'd', 'e']
    for (const id of ids) complete(id, { final_message: id.repeat(6_500) })
    const carried: string[][] = []
    const lengths: number[] = []
    for (let lease = reminders.leaseReminder(); lease !== undefined; lease = reminders.leaseReminder()) {
      carried.push([...lease.taskIds])
      lengths.push(lease.text.length)
      for (const id of ids) expect(lease.text.includes(id.repeat(6_500))).toBe(lease.taskIds.includes(id))
      const left = ids.length - carried.flat().length
      expect(lease.text.includes(`${left} more async task(s) ended. Their results follow`)).toBe(left > 0)
      lease.acknowledge()
      expect(manager.getPendingNotifications()).toHaveLength(left)
    }
    expect(carried).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    expect(Math.max(...lengths)).toBeLessThanOrEqual(20_000)
  })

  it('A5: one result that is too long for it is cut to fit, with its notice, inside no surrogate pair', () => {
    const { reminders, complete } = setUp({ maxMessageChars: 2000 })
    complete('x'.repeat(512), { final_message: '😀'.repeat(20_000) })
    const text = reminders.leaseReminder()?.text ?? ''
    expect(text.length).toBeLessThanOrEqual(20_000)
    expect(text.length).toBeGreaterThan(2000)
    expect(text).toMatch(/😀\n\[Cut after \d+ of \d+ characters\. Read the rest with check_async_tasks \{.*\}\]/)
  })

  it('is larger for a host that wants more about one task', () => {
    const { reminders, complete } = setUp({ maxMessageChars: 50_000 })
    complete('a', { final_message: 'x'.repeat(45_000) })
    complete('b', { final_message: 'x'.repeat(45_000) })
    const lease = reminders.leaseReminder()
    expect(lease?.taskIds).toEqual(['a'])
    expect(lease?.text).not.toContain('[Cut')
  })

  it('A5: what a reminder without a lease has no room for is not marked by markAllNotified', () => {
    const { manager, reminders, complete } = setUp()
    for (const id of ['a', 'b', 'c']) complete(id, { final_message: id.repeat(9_000) })
    complete('s', { final_message: 's'.repeat(9_000) }, 'sub')
    const owed = () => manager.getPendingNotifications().map((task) => task.id)
    expect(reminders.generateReminder('main')).toContain('1 more async task(s) ended.')
    reminders.generateReminder('sub')
    reminders.markAllNotified()
    expect(owed()).toEqual(['c'])
    reminders.markAllNotified()
    expect(owed()).toEqual(['c'])
    expect(reminders.generateReminder('main')).toContain('c'.repeat(9_000))
    reminders.markAllNotified()
    expect(owed()).toEqual([])
  })

  it('bounds the status summary too', () => {
    const { reminders, register } = setUp()
    for (let n = 0; n < 1_000; n += 1) register(`task-${n}`)
    const summary = reminders.generateStatusSummary()
    expect(summary.length).toBeLessThanOrEqual(20_000)
    expect(summary).toMatch(/^\[ASYNC TASKS: 1000 total\]\n[^]*\n\.\.\. and \d+ more: see check_async_tasks$/)
  })
})

describe('a result that JSON cannot hold', () => {
  it('A5: is delivered as far as it can be shown, and later results are not held up', () => {
    const { manager, reminders, complete } = setUp()
    complete('huge', { items: Array.from({ length: 600 }, () => 'x'.repeat(1_000_000)) })
    complete('small', { final_message: 'done' })
    const first = reminders.leaseReminder()
    expect(first?.taskIds).toEqual(['huge', 'small'])
    expect(first?.text.length).toBeLessThanOrEqual(20_000)
    const huge = manager.getTask('huge')!
    first?.acknowledge()
    expect(manager.getPendingNotifications()).toEqual([])
    const whole = reminders.formatCompletionNotification(huge)
    expect(whole).toContain('items left out]')
    expect(whole.length).toBeLessThan(11_000_000)
  })
})

describe('marking as delivered', () => {
  it('marks the tasks that are named, or all that are owed', () => {
    const { manager, reminders, complete } = setUp()
    for (const id of ['a', 'b', 'c']) complete(id)
    reminders.markNotified(['a', 'nobody'])
    expect(manager.getPendingNotifications()).toMatchObject([{ id: 'b' }, { id: 'c' }])
    expect(reminders.hasPendingNotifications()).toBe(true)
    reminders.markAllNotified()
    expect(manager.getPendingNotifications()).toEqual([])
    expect(reminders.hasPendingNotifications()).toBe(false)
  })

  it('says whether an owner has something owed', () => {
    const { reminders, complete } = setUp()
    complete('a', {}, 'sub')
    expect(reminders.hasPendingNotifications('sub')).toBe(true)
    expect(reminders.hasPendingNotifications('main')).toBe(false)
  })
})

it('refuses a maxMessageChars that is not an integer >= 200', () => {
  for (const maxMessageChars of [199, 200.5, Number.NaN]) {
    expect(() => setUp({ maxMessageChars })).toThrow(InvalidSettingError)
  }
  expect(() => setUp({ maxMessageChars: 200 })).not.toThrow()
})

describe('the texts of two owners', () => {
  function ofOwners(options: AsyncTaskManagerOptions = {}) {
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, graceMs: 0, clock: createManualClock(), ...options })
    const complete = (id: string, owner: string, text: string): void => {
      manager.registerTask({ id, owner, subagentName: 's', goalPrompt: 'g' })
      manager.completeTask(id, { final_message: text })
    }
    return { manager, reminders: new AsyncTaskReminderService(manager), complete }
  }

  it('A5: what a reminder of one had no room for is not marked after a reminder of the other', () => {
    const { manager, reminders, complete } = ofOwners()
    for (const id of ['a', 'b']) complete(id, 'one', 'x'.repeat(15_000))
    complete('c', 'two', 'short')
    expect(reminders.generateReminder('one')).toContain('1 more async task(s) ended.')
    expect(reminders.generateReminder('two')).toContain('"agent_id": "c"')
    reminders.markAllNotified()
    expect(manager.getPendingNotifications().map(({ id }) => id)).toEqual(['b'])
    expect(reminders.generateReminder('one')).toContain('"agent_id": "b"')
    reminders.markAllNotified()
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('count what runs and waits for the one that is told', () => {
    const { manager, reminders, complete } = ofOwners({ maxAsyncTasks: 1, whenFull: 'queue' })
    const run = () => new Promise<{ done: true }>(() => undefined)
    for (const [id, owner] of [
      ['a', 'one'],
      ['b', 'one'],
      ['c', 'two'],
    ] as const) {
      manager.launch({ id, owner, subagentName: 's', goalPrompt: 'g' }, run)
    }
    expect(reminders.generateReminder('one').split('\n\n').slice(1)).toEqual([
      '1 async task(s) still running.',
      '1 async task(s) waiting for a slot.\n---',
    ])
    expect(reminders.generateReminder('two').split('\n\n').slice(1)).toEqual([
      '1 async task(s) waiting for a slot.\n---',
    ])
    complete('d', 'two', 'done')
    expect(reminders.leaseReminder({ owner: 'two' })?.text).not.toContain('running')
  })

  it('F6: ask the questions of one, and leave room for what they take', async () => {
    const { manager, reminders, complete } = ofOwners()
    const message = 'Which? '.repeat(70)
    for (const owner of ['one', 'one', 'one', 'one', 'one', 'one', 'one', 'one', 'two']) {
      manager.launch({ owner, subagentName: 's', goalPrompt: 'g' }, (_, context) => {
        void context.ask(`${owner}: ${message}`).catch(() => undefined)
        return new Promise(() => undefined)
      })
    }
    await new Promise((resolve) => setImmediate(resolve))
    for (let nth = 0; nth < 10; nth += 1) complete(`t${nth}`, 'one', 'x'.repeat(1_900))
    const reminder = reminders.leaseReminder({ owner: 'one' })
    const text = reminder?.text ?? ''
    expect(text.length).toBeLessThanOrEqual(20_000)
    expect(text.length).toBeGreaterThan(15_000)
    expect(text).not.toContain('two: ')
    const asked = text.split('one: Which?').length - 1
    expect(reminder?.questions).toHaveLength(asked)
    expect([asked > 3, asked < 8]).toEqual([true, true])
    const shown = reminder?.taskIds ?? []
    expect(text).toContain(`${10 - shown.length} more async task(s) ended.`)
    reminder?.release()
    expect(reminders.leaseReminder({ owner: 'two' })?.questions).toHaveLength(1)
  })
})
