/** Schedules: F16. */
import { describe, expect, it } from 'vitest'
import { AgentTasksError } from '../../../src/index.js'
import type { ScheduleInput } from '../../../src/index.js'
import { untilAborted } from '../../support/limited-tasks.js'
import { HOUR, MINUTE, scheduledTasks, SECOND, START } from '../../support/scheduled-tasks.js'
import { DisposedError, InvalidInputError } from '../../../src/errors.js'

const wake = { message: 'look' } as const
const launch = { launch: { subagent: 'scout', goal: 'look around' } } as const

describe('a schedule', () => {
  it('F16: wakes its owner once, after a time, with the message and the local time', async () => {
    const { schedule, pass, notes, manager, clock } = scheduledTasks()
    const made = schedule({ in: 90 * SECOND, message: 'look', owner: 'ada', timeZone: 'Europe/Berlin' })
    expect(made).toMatchObject({ id: 'schedule-1', next: START + 90 * SECOND })
    await pass(89 * SECOND)
    expect(notes()).toEqual([])
    await pass(SECOND)
    expect(notes('ada')).toEqual([
      'look\n\n(schedule schedule-1, due 2027-01-04 13:01:30 GMT+01:00 (Europe/Berlin); it has ended)',
    ])
    expect(manager.getPendingNotifications('ada')[0]).toMatchObject({ subagentName: 'schedule', status: 'completed' })
    expect([made.next, manager.schedules(), clock.pending]).toEqual([undefined, [], 0])
    expect(made.cancel()).toBe(false)
    await pass(HOUR)
    expect(notes()).toHaveLength(1)
  })

  it.each<[string, ScheduleInput['at'], string | undefined]>([
    ['a date', new Date(START + HOUR), undefined],
    ['a time with an offset', '2027-01-04T14:00:00+01:00', undefined],
    ['a time in UTC', '2027-01-04T13:00Z', undefined],
    ['a local time', '2027-01-04T14:00', 'Europe/Berlin'],
    ['a local time with seconds', '2027-01-04T08:00:00', 'America/New_York'],
  ])('F16: fires at %s', async (_, at = '', timeZone) => {
    const { manager, pass, notes, dues } = scheduledTasks()
    const { next } = manager.schedule({ at, message: 'look', ...(timeZone !== undefined && { timeZone }) })
    expect(next).toBe(START + HOUR)
    await pass(HOUR - 1)
    expect(notes()).toEqual([])
    await pass(1)
    expect(dues()).toHaveLength(1)
  })

  it('F16: fires again and again, without drift, and says when next', async () => {
    const { schedule, pass, dues, notes, manager } = scheduledTasks()
    const { id } = schedule({ every: 45 * SECOND, ...wake })
    await pass(3 * MINUTE)
    expect(dues()).toEqual(['12:00:45', '12:01:30', '12:02:15', '12:03:00'].map((time) => `2027-01-04 ${time}`))
    expect(notes()[0]).toContain('; next 2027-01-04 12:01:30 GMT+00:00 (UTC))')
    expect(manager.schedules()).toMatchObject([{ id, fired: 4, missedFirings: 0, skippedFirings: 0 }])
  })

  it('F16: fires as a cron expression says, in its zone, and by default in that of the system', async () => {
    const { schedule, manager, pass, dues } = scheduledTasks()
    schedule({ cron: '30 14 * * 1,2', timeZone: 'Europe/Berlin', ...wake })
    await pass(25 * HOUR + 30 * MINUTE)
    expect(dues()).toEqual(['2027-01-04 14:30:00', '2027-01-05 14:30:00'])
    manager.schedule({ cron: '@daily', ...wake })
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    expect(manager.schedules().map((each) => each.timeZone)).toContain(timeZone)
  })

  it('F16: launches a task, which it owns like one that was launched by hand', async () => {
    const { schedule, pass, runs, manager } = scheduledTasks()
    const context = { depth: 2 }
    schedule({
      in: SECOND,
      owner: 'ada',
      launch: { subagent: 'scout', goal: 'look', context, timeoutMs: 5000 },
    })
    context.depth = 3
    await pass(SECOND)
    expect(runs.map(({ input }) => input)).toMatchObject([{ subagent: 'scout', goal: 'look', context: { depth: 2 } }])
    expect(manager.getRunningTasks('ada')).toMatchObject([{ goalPrompt: 'look', timeoutMs: 5000 }])
    await runs[0]?.end()
    expect(manager.getPendingNotifications('ada')).toMatchObject([{ output: { final_message: 'done' } }])
  })

  it('F16: skips a firing while its last task has not ended, and counts it; with overlap: allow it does not', async () => {
    const { schedule, pass, runs, manager } = scheduledTasks()
    schedule({ every: MINUTE, ...launch })
    await pass(3 * MINUTE)
    expect(runs).toHaveLength(1)
    expect(manager.schedules()).toMatchObject([{ fired: 1, skippedFirings: 2, lastTaskId: runs[0]?.input.id }])
    await runs[0]?.end()
    await pass(MINUTE)
    expect(runs).toHaveLength(2)
    const other = scheduledTasks()
    other.schedule({ every: MINUTE, overlap: 'allow', ...launch })
    await other.pass(3 * MINUTE)
    expect(other.runs).toHaveLength(3)
    expect(other.manager.schedules()).toMatchObject([{ fired: 3, skippedFirings: 0 }])
  })

  it('F16: skips a firing also while its last task waits for a slot', async () => {
    const { schedule, pass, manager } = scheduledTasks({ maxAsyncTasks: 0, whenFull: 'queue' })
    schedule({ cron: '* * * * *', ...launch })
    await pass(3 * MINUTE)
    expect(manager.getQueuedTasks()).toHaveLength(1)
    expect(manager.schedules()).toMatchObject([{ fired: 1, skippedFirings: 2 }])
  })

  it('F16: launches a task that waits while its owner is paused', async () => {
    const { schedule, pass, manager, runs } = scheduledTasks()
    schedule({ every: MINUTE, ...launch })
    manager.pause()
    await pass(2 * MINUTE)
    expect([manager.getQueuedTasks().length, runs.length]).toEqual([1, 0])
    manager.resume()
    await pass(1)
    expect(runs).toHaveLength(1)
  })

  it('F16: owes a note when its task cannot be launched', async () => {
    let isKnown = true
    const { schedule, pass, notes } = scheduledTasks({
      maxAsyncTasks: 0,
      findRunner: () => (isKnown ? () => ({}) : undefined),
    })
    schedule({ every: MINUTE, owner: 'ada', ...launch })
    await pass(MINUTE)
    isKnown = false
    await pass(MINUTE)
    expect(notes('ada')).toEqual([
      'The scheduled task was not launched (scout: look around): Max async tasks (0) reached',
      'The scheduled task was not launched (scout: look around): launch.subagent: got "scout", expected a subagent that this host can start.',
    ])
  })

  it('F16: launches its task also when finding its runner cancels it, and has ended then', async () => {
    const found: string[] = []
    const { schedule, pass, manager, errors } = scheduledTasks({
      findRunner: (name) => {
        found.push(name)
        if (found.length === 2) manager.cancelSchedule('schedule-1')
        return () => ({})
      },
    })
    schedule({ every: MINUTE, ...launch })
    await pass(3 * MINUTE)
    expect([manager.schedules(), errors, found.length, manager.getAllTasks().length]).toEqual([[], [], 2, 1])
  })

  it('F16: is listed by its time and by owner, and ends when it is cancelled', async () => {
    const { schedule, manager, pass, notes, clock } = scheduledTasks()
    const late = schedule({ in: HOUR, owner: 'ada', ...wake })
    const early = schedule({ every: MINUTE, owner: 'bob', ...wake })
    expect(manager.schedules().map(({ id }) => id)).toEqual([early.id, late.id])
    expect(manager.schedules('ada').map(({ id }) => id)).toEqual([late.id])
    expect([early.cancel(), early.cancel(), manager.cancelSchedule('no')]).toEqual([true, false, false])
    expect(manager.cancelSchedule(late.id)).toBe(true)
    expect([manager.schedules(), clock.pending]).toEqual([[], 0])
    await pass(2 * HOUR)
    expect(notes()).toEqual([])
  })

  it('F16: ends with its manager, and leaves no timer', async () => {
    const { schedule, manager, clock } = scheduledTasks()
    const made = schedule({ every: MINUTE, ...wake })
    await manager.dispose()
    expect([manager.schedules(), made.next, made.cancel(), clock.pending]).toEqual([[], undefined, false, 0])
    expect(() => schedule({ every: MINUTE, ...wake })).toThrow(DisposedError)
    expect(clock.pending).toBe(0)
  })

  it('F16: sets one timer, of at most 30 s', () => {
    const { schedule, clock } = scheduledTasks()
    for (let n = 0; n < 20; n += 1) schedule({ in: HOUR + n, ...wake })
    expect([clock.pending, clock.nextDue]).toEqual([1, 30 * SECOND])
    schedule({ in: 10 * SECOND, ...wake })
    expect([clock.pending, clock.nextDue]).toEqual([1, 10 * SECOND])
  })
})

describe('the owner of a schedule', () => {
  it('F16: passes its schedules on when it is released, or ends them', async () => {
    const { schedule, manager, pass, notes, clock } = scheduledTasks()
    schedule({ in: MINUTE, owner: 'ada', ...wake })
    schedule({ in: MINUTE, owner: 'bob', ...wake })
    manager.releaseOwner('ada', { to: 'eve' })
    manager.releaseOwner('bob')
    expect(manager.schedules().map(({ owner }) => owner)).toEqual(['eve'])
    await pass(MINUTE)
    expect([notes('eve').length, notes().length, clock.pending]).toEqual([1, 1, 0])
  })

  it('F16: may be a run, which passes them to the owner of its task when it ends', async () => {
    const { schedule, manager, pass, notes } = scheduledTasks()
    manager.registerTask({ id: 'a', subagentName: 'scout', goalPrompt: 'g', owner: 'ada' })
    schedule({ every: MINUTE, owner: 'run:a', ...wake })
    await pass(MINUTE)
    expect(notes('run:a')).toHaveLength(1)
    manager.completeTask('a', { final_message: 'end of a' })
    expect(manager.schedules()).toMatchObject([{ owner: 'ada' }])
    await pass(MINUTE)
    expect(notes('ada')).toHaveLength(3)
    expect(() => schedule({ in: 1, owner: 'run:a', ...wake })).toThrow(/input\.owner: got "run:a"/)
  })

  it('F16: that is a run passes them on also when it has had only schedules', () => {
    const { schedule, manager } = scheduledTasks()
    manager.registerTask({ id: 'a', subagentName: 'scout', goalPrompt: 'g', owner: 'ada' })
    schedule({ in: HOUR, owner: 'run:a', ...wake })
    manager.failTask('a', 'no luck')
    expect(manager.schedules()).toMatchObject([{ owner: 'ada' }])
  })

  it('F16: has the tasks of its schedules as children while it is a run', async () => {
    const { schedule, manager, pass, runs } = scheduledTasks()
    manager.launch({ id: 'a', subagentName: 'scout', goalPrompt: 'g' }, untilAborted)
    schedule({ in: MINUTE, owner: 'run:a', ...launch })
    await pass(MINUTE)
    expect(manager.getTask(runs[0]?.input.id ?? '')).toMatchObject({ parentId: 'a', owner: 'run:a', depth: 1 })
  })
})

describe('a clock on the wall that is set', () => {
  it('F16: on, fires once what has fallen due, and says how many were missed', async () => {
    const { schedule, pass, clock, notes, manager } = scheduledTasks()
    schedule({ every: 10 * MINUTE, ...wake })
    clock.jump(HOUR)
    await pass(30 * SECOND)
    expect(notes()).toEqual([
      'look\n\n(schedule schedule-1, due 2027-01-04 13:00:00 GMT+00:00 (UTC); 5 firings fell due while the host was not running; next 2027-01-04 13:10:00 GMT+00:00 (UTC))',
    ])
    expect(manager.schedules()).toMatchObject([{ fired: 1, missedFirings: 5 }])
    await pass(10 * MINUTE - 30 * SECOND)
    expect(notes()).toHaveLength(2)
  })

  it('F16: on, far beyond, fires once or not at all, as missed says', async () => {
    const { schedule, pass, clock, dues, notes, manager } = scheduledTasks()
    schedule({ at: '2027-01-04T12:30Z', message: 'once' })
    schedule({ at: '2027-01-04T12:30Z', message: 'never', missed: 'skip' })
    schedule({ cron: '0 * * * *', message: 'skips', missed: 'skip' })
    clock.jump(2 * HOUR + 30 * MINUTE)
    await pass(30 * SECOND)
    expect(notes()).toEqual([
      expect.stringMatching(/^once\n.*; 1 firing fell due while the host was not running; it has ended\)$/s),
    ])
    expect(manager.schedules()).toMatchObject([{ message: 'skips', fired: 0, missedFirings: 2 }])
    await pass(30 * MINUTE)
    expect(dues()[1]).toBe('2027-01-04 15:00:00')
    expect(notes()[1]).toMatch(/^skips\n\n\(schedule \S+, due [^;]*; next [^;]*\)$/)
  })

  it('F16: back, fires nothing twice', async () => {
    const { schedule, pass, clock, dues } = scheduledTasks()
    schedule({ cron: '*/30 * * * *', ...wake })
    await pass(30 * MINUTE)
    clock.jump(-HOUR)
    await pass(90 * MINUTE)
    expect(dues()).toEqual(['2027-01-04 12:30:00', '2027-01-04 13:00:00'])
  })

  it('F16: back, lets nothing wait longer than it was to wait in all', async () => {
    const { schedule, pass, clock, notes } = scheduledTasks()
    schedule({ in: 10 * MINUTE, message: 'in' })
    schedule({ every: MINUTE, message: 'every' })
    await pass(30 * SECOND)
    clock.jump(-10 * HOUR)
    await pass(2 * MINUTE)
    expect(notes()).toHaveLength(1)
    await pass(9 * MINUTE)
    expect(notes().filter((note) => note.startsWith('in'))).toHaveLength(1)
  })

  it('F16: counts the missed firings of a cron expression up to ten, and says when the last one was due', async () => {
    const { schedule, pass, clock, notes, manager } = scheduledTasks()
    schedule({ cron: '* * * * *', ...wake })
    clock.jump(5 * HOUR)
    await pass(30 * SECOND)
    expect(notes()).toEqual([
      expect.stringMatching(
        /due 2027-01-04 17:00:00 .*; at least 10 firings fell due while the host was not running; next 2027-01-04 17:01:00/,
      ),
    ])
    expect(manager.schedules()).toMatchObject([{ missedFirings: 10 }])
  })
})

describe('many schedules', () => {
  it('F16: that are due at once fire in several turns, each once', async () => {
    const { schedule, clock, manager, pass } = scheduledTasks({ schedules: { maxPerOwner: 1000 } })
    for (let n = 0; n < 50; n += 1) schedule({ in: 10 * SECOND, message: `wake ${n}`, owner: `owner ${n}` })
    clock.jump(10 * SECOND)
    const counts = new Set<number>()
    manager.transitions$.subscribe(() => counts.add(manager.schedules().length))
    await pass(30 * SECOND)
    expect(manager.getPendingNotifications()).toHaveLength(50)
    expect(manager.schedules()).toEqual([])
    // A turn has ended before the last of them fired.
    expect([...counts].some((count) => count >= 30 && count < 50)).toBe(true)
  })
})

describe('a clock that was wrong', () => {
  it('F16: does not keep a cron expression from firing when it is set back by more than an hour', async () => {
    const { schedule, clock, pass, manager, notes } = scheduledTasks()
    schedule({ cron: '0 * * * *', ...wake })
    const right = manager.schedules()[0]?.next ?? 0
    clock.jump(48 * HOUR)
    await pass(30 * SECOND)
    expect(notes()).toHaveLength(1)
    clock.jump(-48 * HOUR)
    await pass(30 * SECOND)
    expect(manager.schedules()[0]?.next).toBe(right)
  })

  it('F16: repeats nothing when it is set back by less', async () => {
    const { schedule, clock, pass, manager } = scheduledTasks()
    schedule({ cron: '0 * * * *', ...wake })
    const { next = 0 } = manager.schedules()[0] ?? {}
    await pass(next - clock.now())
    const following = manager.schedules()[0]?.next
    clock.jump(-HOUR / 2)
    await pass(30 * SECOND)
    expect(manager.schedules()[0]?.next).toBe(following)
  })
})

/** The local times at which an expression fires around a change. */
async function firings(cron: string, timeZone: string, from: string, hours: number): Promise<string[]> {
  const { schedule, pass, notes } = scheduledTasks({}, Date.parse(from))
  schedule({ cron, timeZone, message: 'look' })
  await pass(hours * HOUR)
  return notes().map((note) => /due (\S+ \S+ \S+) /.exec(note)?.[1]?.slice(5) ?? '')
}

describe('a change to or from summer time', () => {
  it.each([
    ['Europe/Berlin', '30 2 * * *', '2027-03-27T12:00Z', ['03-28 03:00:00 GMT+02:00', '03-29 02:30:00 GMT+02:00']],
    [
      'Europe/Berlin',
      '15,45 2 * * *',
      '2027-03-27T12:00Z',
      ['03-28 03:00:00 GMT+02:00', '03-29 02:15:00 GMT+02:00', '03-29 02:45:00 GMT+02:00'],
    ],
    ['Europe/Berlin', '*/30 2 * * *', '2027-03-27T12:00Z', ['03-29 02:00:00 GMT+02:00', '03-29 02:30:00 GMT+02:00']],
    ['America/New_York', '30 2 * * *', '2027-03-13T18:00Z', ['03-14 03:00:00 GMT-04:00', '03-15 02:30:00 GMT-04:00']],
    [
      'America/New_York',
      '15,45 2 * * *',
      '2027-03-13T18:00Z',
      ['03-14 03:00:00 GMT-04:00', '03-15 02:15:00 GMT-04:00', '03-15 02:45:00 GMT-04:00'],
    ],
    ['America/New_York', '*/30 2 * * *', '2027-03-13T18:00Z', ['03-15 02:00:00 GMT-04:00', '03-15 02:30:00 GMT-04:00']],
  ])(
    'F16: in spring, in %s, "%s" fires once at the end of the hour that is left out, unless it has a *',
    async (zone, cron, from, expected) => {
      expect(await firings(cron, zone, from, 37)).toEqual(expected)
    },
  )

  it.each([
    ['Europe/Berlin', '30 2 * * *', '2027-10-30T12:00Z', ['10-31 02:30:00 GMT+02:00']],
    ['Europe/Berlin', '15,45 2 * * *', '2027-10-30T12:00Z', ['10-31 02:15:00 GMT+02:00', '10-31 02:45:00 GMT+02:00']],
    [
      'Europe/Berlin',
      '*/30 2 * * *',
      '2027-10-30T12:00Z',
      ['10-31 02:00:00 GMT+02:00', '10-31 02:30:00 GMT+02:00', '10-31 02:00:00 GMT+01:00', '10-31 02:30:00 GMT+01:00'],
    ],
    ['America/New_York', '30 1 * * *', '2027-11-06T18:00Z', ['11-07 01:30:00 GMT-04:00']],
    [
      'America/New_York',
      '15,45 1 * * *',
      '2027-11-06T18:00Z',
      ['11-07 01:15:00 GMT-04:00', '11-07 01:45:00 GMT-04:00'],
    ],
    [
      'America/New_York',
      '*/30 1 * * *',
      '2027-11-06T18:00Z',
      ['11-07 01:00:00 GMT-04:00', '11-07 01:30:00 GMT-04:00', '11-07 01:00:00 GMT-05:00', '11-07 01:30:00 GMT-05:00'],
    ],
  ])(
    'F16: in autumn, in %s, "%s" fires in the first of two hours, and in both if it has a *',
    async (zone, cron, from, expected) => {
      expect(await firings(cron, zone, from, 24)).toEqual(expected)
    },
  )

  it('F16: moves a local time that is left out, takes the first of two, and does not move every', async () => {
    const spring = scheduledTasks({}, Date.parse('2027-03-28T00:00Z'))
    const left = spring.manager.schedule({ at: '2027-03-28T02:30', timeZone: 'Europe/Berlin', ...wake })
    expect(left.next).toBe(Date.parse('2027-03-28T03:30+02:00'))
    const autumn = scheduledTasks({}, Date.parse('2027-10-30T12:00Z'))
    const twice = autumn.manager.schedule({ at: '2027-10-31T02:30', timeZone: 'Europe/Berlin', ...wake })
    expect(twice.next).toBe(Date.parse('2027-10-31T02:30+02:00'))
    autumn.schedule({ every: 6 * HOUR, timeZone: 'Europe/Berlin', ...wake })
    await autumn.pass(24 * HOUR)
    expect(autumn.dues().filter((due) => !due.includes('02:30'))).toEqual(
      ['10-30 20:00:00', '10-31 02:00:00', '10-31 07:00:00', '10-31 13:00:00'].map((due) => `2027-${due}`),
    )
  })
})

describe('limits of schedules', () => {
  it('F16: an owner has at most 100, or as many as the option says, and others are not affected', () => {
    const { schedule, manager } = scheduledTasks()
    for (let n = 0; n < 100; n += 1) schedule({ in: HOUR, ...wake })
    expect(() => schedule({ in: HOUR, ...wake })).toThrow(
      expect.objectContaining({
        code: 'SCHEDULE_LIMIT',
        message: 'Max schedules of an owner (100, schedules.maxPerOwner) reached. Cancel one that is no longer needed.',
      }),
    )
    expect(manager.schedules()).toHaveLength(100)
    schedule({ in: HOUR, owner: 'ada', ...wake })
    const [oldest] = manager.schedules('main')
    manager.cancelSchedule(oldest?.id ?? '')
    schedule({ in: HOUR, ...wake })
    const none = scheduledTasks({ schedules: { maxPerOwner: 0 } })
    expect(() => none.schedule({ in: HOUR, ...wake })).toThrow(AgentTasksError)
  })

  it('F16: all owners together have at most 10,000', () => {
    const { schedule, manager } = scheduledTasks()
    for (let n = 0; n < 10_000; n += 1) schedule({ in: HOUR, owner: `owner ${n % 100}`, ...wake })
    expect(() => schedule({ in: HOUR, owner: 'one more', ...wake })).toThrow(
      new AgentTasksError('SCHEDULE_LIMIT', 'Max schedules of all owners (10000) reached.'),
    )
    manager.cancelSchedule(manager.schedules()[0]?.id ?? '')
    schedule({ in: HOUR, owner: 'one more', ...wake })
  })

  it('F16: an owner that takes no notes gets no more of them from schedules that fire once', async () => {
    const { schedule, manager, notes, pass } = scheduledTasks()
    const refused: unknown[] = []
    for (let round = 0; round < 14; round += 1) {
      for (let n = 0; n < 100; n += 1) {
        try {
          schedule({ in: MINUTE, ...wake })
        } catch (error) {
          refused.push(error)
        }
      }
      await pass(2 * MINUTE)
    }
    expect([notes().length, refused.length]).toEqual([200, 1200])
    expect(refused[0]).toMatchObject({
      code: 'SCHEDULE_LIMIT',
      message: 'Max undelivered notes of an owner (200) reached: 200 are owed to "main". Deliver them first.',
    })
    schedule({ in: MINUTE, owner: 'ada', ...wake })
    manager.lease({ owner: 'main' })?.acknowledge()
    schedule({ in: MINUTE, ...wake })
  })

  it('F16: one fires every 10 s at most, or as often as the option says', async () => {
    const { schedule } = scheduledTasks()
    expect(() => schedule({ every: 9_999, ...wake })).toThrow(
      'input.every: got 9999, expected at least 10000 ms, the minimum period of schedules.',
    )
    schedule({ every: 10_000, ...wake })
    const slow = scheduledTasks({ schedules: { minPeriodMs: 5 * MINUTE } })
    expect(() => slow.schedule({ every: MINUTE, ...wake })).toThrow(/at least 300000 ms/)
    slow.schedule({ cron: '0,3,6 * * * *', ...wake })
    await slow.pass(2 * HOUR)
    expect(slow.dues().map((due) => due.slice(11, 16))).toEqual(['12:03', '13:00', '13:06', '14:00'])
  })

  it.each([
    [{ maxPerOwner: -1 }, /maxPerOwner: got -1/],
    [{ minPeriodMs: 999 }, /minPeriodMs: got 999/],
    [{ max: 3 }, /options\.schedules\.max/],
  ])('F16: refuses the options %j', (options, message) => {
    expect(() => scheduledTasks({ schedules: options as object })).toThrow(message)
  })

  it('F16: a message and a goal have 4000 characters, and a context 4000 bytes', () => {
    const { schedule, manager } = scheduledTasks()
    const text = 'x'.repeat(4000)
    schedule({ in: 1, message: text })
    schedule({ in: 1, launch: { subagent: 'scout', goal: text, context: { a: 'x'.repeat(3990) } } })
    expect(() => schedule({ in: 1, message: `${text}x` })).toThrow(/input\.message: .*at most 4000 characters/)
    expect(() => schedule({ in: 1, launch: { subagent: 'scout', goal: `${text}x` } })).toThrow(/input\.launch\.goal: /)
    expect(() =>
      schedule({ in: 1, launch: { subagent: 'scout', goal: 'g', context: { a: 'ü'.repeat(2000) } } }),
    ).toThrow(/input\.launch\.context: .*at most 4000 bytes of JSON/)
    expect(manager.schedules()).toHaveLength(2)
  })
})

describe('what is to be scheduled', () => {
  const zoned = { timeZone: 'Europe/Berlin', ...wake }
  it.each<[string, object, string | RegExp]>([
    ['nothing', { ...wake }, 'input: got an empty array, expected exactly one of in, at, every, cron.'],
    ['two times', { in: 1, cron: '* * * * *', ...wake }, /input: got an array of 2, expected exactly one of in/],
    ['no message', { in: 1 }, /exactly one of message, launch/],
    ['a message and a task', { in: 1, ...wake, ...launch }, /exactly one of message, launch/],
    ['an unknown field', { in: 1, ...wake, text: 'x' }, /input\.text/],
    ['a negative wait', { in: -1, ...wake }, /input\.in: got -1, expected at least 0/],
    ['a wait that is no number', { in: '1', ...wake }, /input\.in: got "1", expected a number/],
    ['an endless wait', { in: Infinity, ...wake }, /input\.in: got Infinity/],
    ['a wait of centuries', { in: 1e13, ...wake }, /input\.in: got 10000000000000, expected at most/],
    ['a period of centuries', { every: 1e13, ...wake }, /input\.every: /],
    ['an empty message', { in: 1, message: '' }, /input\.message: got "", expected at least 1 character/],
    ['a message that is no text', { in: 1, message: 7 }, /input\.message: got 7/],
    [
      'a zone that does not exist',
      { cron: '* * * * *', ...wake, timeZone: 'Europe/Atlantis' },
      'input.timeZone: got "Europe/Atlantis", expected a time zone such as Europe/Berlin.',
    ],
    ['an empty zone', { in: 1, ...wake, timeZone: '' }, /input\.timeZone: got ""/],
    ['a zone of a wait', { in: 1, ...wake, timeZone: 'nowhere' }, /input\.timeZone: got "nowhere"/],
    [
      'six fields',
      { cron: '* * * * * *', ...zoned },
      /input\.cron: got "\* \* \* \* \* \*", expected a cron expression of five fields/,
    ],
    [
      'a minute that does not exist',
      { cron: '61 * * * *', ...zoned },
      /input\.cron: got "61 \* \* \* \*", expected a cron expression of five fields \(/,
    ],
    ['an unknown name', { cron: '@sometimes', ...zoned }, /input\.cron: got "@sometimes"/],
    ['a date as an expression', { cron: '2030-01-01T00:00:00', ...zoned }, /input\.cron: /],
    [
      'an expression that never matches',
      { cron: '0 0 30 2 *', ...zoned },
      'input.cron: got "0 0 30 2 *", expected one that matches a time.',
    ],
    ['a long expression', { cron: `${'1,'.repeat(200)}1 * * * *`, ...zoned }, /input\.cron: .*at most 200/],
    ['a past time', { at: new Date(START - 1), ...wake }, /input\.at: .*expected a time within the next ten years/],
    ['a far time', { at: '2037-12-01T00:00Z', ...wake }, /a time within the next ten years/],
    ['an invalid date', { at: new Date(NaN), ...wake }, /input\.at: /],
    [
      'no time',
      { at: 'tomorrow', ...zoned },
      'input.at: got "tomorrow", expected an ISO time such as 2027-03-28T09:00:00+02:00.',
    ],
    ['a day without a time', { at: '2027-03-28', ...zoned }, /expected an ISO time/],
    ['the 30th of February', { at: '2027-02-30T10:00', ...zoned }, /input\.at: got "2027-02-30T10:00"/],
    ['the 30th of February in UTC', { at: '2027-02-30T10:00Z', ...wake }, /input\.at: got "2027-02-30T10:00Z"/],
    ['the 25th hour', { at: '2027-02-20T25:00', ...zoned }, /input\.at: /],
    [
      'a local time without a zone',
      { at: '2027-03-28T09:00', ...wake },
      'input.at: got "2027-03-28T09:00", expected a time with an offset such as +02:00, or a local time and timeZone.',
    ],
    ['an empty owner', { in: 1, ...wake, owner: '' }, /input\.owner: /],
    ['the run of no task', { in: 1, ...wake, owner: 'run:nothing' }, /input\.owner: got "run:nothing"/],
    [
      'an unknown subagent',
      { in: 1, launch: { subagent: 'poet', goal: 'g' } },
      'input.launch.subagent: got "poet", expected a subagent that this host can start.',
    ],
    ['no goal', { in: 1, launch: { subagent: 'scout' } }, /input\.launch\.goal: /],
    [
      'a context that is no object',
      { in: 1, launch: { subagent: 'scout', goal: 'g', context: [1] } },
      /input\.launch\.context: /,
    ],
    [
      'a negative deadline',
      { in: 1, launch: { subagent: 'scout', goal: 'g', timeoutMs: -1 } },
      /input\.launch\.timeoutMs: /,
    ],
    ['missed', { in: 1, ...wake, missed: 'all' }, 'input.missed: got "all", expected one of "once", "skip".'],
    ['overlap', { in: 1, ...wake, overlap: true }, 'input.overlap: got true, expected one of "skip", "allow".'],
  ])('F16: is refused for %s, with nothing changed', (_, input, message) => {
    const { manager, clock } = scheduledTasks()
    expect(() => manager.schedule(input as ScheduleInput)).toThrow(message)
    expect(() => manager.schedule(input as ScheduleInput)).toThrow(InvalidInputError)
    expect([manager.schedules(), clock.pending]).toEqual([[], 0])
  })
})

describe('an owner that takes no notes', () => {
  it('F16: is owed at most a hundred; further firings are counted as skipped, and the last one of a schedule is owed', async () => {
    const { schedule, pass, notes, manager } = scheduledTasks()
    schedule({ every: 10 * SECOND, ...wake })
    schedule({ in: 20 * MINUTE, message: 'last' })
    await pass(20 * MINUTE)
    expect(notes()).toHaveLength(101)
    expect(notes()).toContainEqual(expect.stringMatching(/^last/))
    expect(manager.schedules()).toMatchObject([{ fired: 100, skippedFirings: 20 }])
  })
})
