/** What a crash, a restart and a broken store leave of schedules: F16. */
import { describe, expect, it } from 'vitest'
import { AgentTasksError, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { breakableStore } from '../../support/breakable-store.js'
import { tick, untilAborted } from '../../support/limited-tasks.js'
import { HOUR, MINUTE, scheduledTasks, SECOND, START } from '../../support/scheduled-tasks.js'
import type { StoreChange, StoredJson } from '../../../src/store/store.js'
import { InvalidInputError } from '../../../src/errors.js'

const wake = { message: 'look' } as const
const launch = { launch: { subagent: 'scout', goal: 'look around' } } as const

/** A process with a store, and the tables and ids of each of its writes. */
function storedTasks(store: MemoryStore = memoryStore(), start = START, options: AsyncTaskManagerOptions = {}) {
  const writes: string[][] = []
  const write = store.write.bind(store)
  store.write = (changes: readonly StoreChange[]) => {
    writes.push(changes.map((change) => ('put' in change ? `+${change.put.id}` : `-${change.remove}`)))
    return write(changes)
  }
  const tasks = scheduledTasks({ store, ...options }, start)
  return {
    ...tasks,
    store,
    writes,
    rows: () => store.contents().featureStates.map(({ id, data }) => ({ id, data })),
    /** The next process, on what the store holds now. */
    next: async (at: number, more: AsyncTaskManagerOptions = {}) => {
      const following = storedTasks(store.copy(), at, more)
      await following.manager.recovered
      following.clock.advance(0)
      await tick()
      return following
    },
  }
}

describe('a schedule with a key', () => {
  const nightly = { key: 'nightly', cron: '0 9 * * *', ...launch } as const

  it('F16: is one, however often a host that creates it is started', async () => {
    const { schedule, next, manager } = storedTasks()
    const rules = [nightly, { key: 'poll', every: HOUR, ...wake }, { key: 'later', in: 3 * HOUR, ...wake }] as const
    const first = rules.map((rule) => schedule(rule))
    await manager.stored()
    const later = await next(START + HOUR / 2)
    const again = rules.map((rule) => later.schedule(rule))
    expect(again.map(({ id }) => id)).toEqual(first.map(({ id }) => id))
    expect(again.map((each) => each.next)).toEqual([START + 21 * HOUR, START + HOUR, START + 3 * HOUR])
    await later.pass(HOUR / 2)
    expect(later.notes()).toHaveLength(1)
    later.schedule(rules[1])
    expect(later.manager.schedules()).toMatchObject([{ key: 'poll', fired: 1 }, { key: 'later' }, { key: 'nightly' }])
  })

  it('F16: is created again when it has fired for the last time', async () => {
    const { schedule, pass, notes, manager } = scheduledTasks()
    const soon = { key: 'soon', in: MINUTE, ...wake } as const
    schedule(soon)
    await pass(2 * MINUTE)
    expect(manager.schedules()).toEqual([])
    schedule(soon)
    await pass(2 * MINUTE)
    expect(notes()).toHaveLength(2)
  })

  it('F16: is replaced by another rule, and does not overlap what it has launched', async () => {
    const { schedule, pass, runs, manager } = scheduledTasks()
    const { id } = schedule({ key: 'scan', every: MINUTE, ...launch })
    await pass(MINUTE)
    const changed = schedule({ key: 'scan', every: 2 * MINUTE, ...launch })
    expect(changed).toMatchObject({ id, next: START + 3 * MINUTE })
    await pass(2 * MINUTE)
    expect(runs).toHaveLength(1)
    expect(manager.schedules()).toMatchObject([{ id, every: 2 * MINUTE, fired: 0, skippedFirings: 1 }])
    expect(changed.cancel()).toBe(true)
    expect(manager.schedules()).toEqual([])
  })

  it('F16: at a time is the same one for the same time only', () => {
    const { schedule, manager } = scheduledTasks()
    const at = (hour: number) => ({ key: 'call', at: new Date(START + hour * HOUR), ...wake })
    const first = schedule(at(1))
    expect(schedule(at(1))).toMatchObject({ id: first.id, next: START + HOUR })
    expect(schedule(at(2))).toMatchObject({ id: first.id, next: START + 2 * HOUR })
    expect(manager.schedules()).toHaveLength(1)
  })

  it('F16: is refused as a whole when its new rule is invalid, and needs no room when it exists', () => {
    const { schedule, manager } = scheduledTasks({ schedules: { maxPerOwner: 1 } })
    schedule(nightly)
    expect(() => schedule({ ...nightly, cron: '61 9 * * *' })).toThrow(InvalidInputError)
    expect(() => schedule({ ...nightly, key: '' })).toThrow(InvalidInputError)
    expect(() => schedule({ ...nightly, key: 'other' })).toThrow(AgentTasksError)
    expect(schedule({ ...nightly, cron: '0 10 * * *' }).next).toBe(START + 22 * HOUR)
    expect(manager.schedules()).toHaveLength(1)
  })

  it('F16: is that of its owner, and an heir keeps its own', () => {
    const { schedule, manager } = scheduledTasks()
    schedule({ ...nightly, owner: 'ada' })
    schedule({ ...nightly, owner: 'bob' })
    expect(manager.schedules()).toHaveLength(2)
    manager.releaseOwner('ada', { to: 'bob' })
    const keys = manager.schedules('bob').map(({ key }) => key)
    expect(keys.filter((key) => key === 'nightly')).toHaveLength(1)
    expect(keys).toHaveLength(2)
  })
})

describe('a schedule in a store', () => {
  it('F16: is a row, which goes when it is cancelled, and stays when its manager is disposed', async () => {
    const { schedule, rows, manager, writes } = storedTasks()
    const first = schedule({ every: HOUR, owner: 'ada', ...wake })
    const second = schedule({ cron: '0 9 * * *', ...launch })
    await manager.stored()
    expect(writes).toEqual([[`+schedules/${first.id}`, `+schedules/${second.id}`]])
    expect(rows()[0]?.data).toEqual({
      owner: 'ada',
      every: HOUR,
      message: 'look',
      next: START + HOUR,
      timeZone: 'UTC',
      missed: 'once',
      overlap: 'skip',
      fired: 0,
      missedFirings: 0,
      skippedFirings: 0,
    })
    first.cancel()
    await manager.stored()
    expect(rows().map(({ id }) => id)).toEqual([`schedules/${second.id}`])
    await manager.dispose()
    expect(rows().map(({ id }) => id)).toEqual([`schedules/${second.id}`])
  })

  it('F16: fires in one write with its note, and with its end', async () => {
    const { schedule, pass, writes, manager, rows } = storedTasks()
    const { id } = schedule({ every: MINUTE, ...wake })
    const once = schedule({ in: 90 * SECOND, ...wake })
    await manager.stored()
    writes.length = 0
    await pass(MINUTE)
    expect(writes).toEqual([[expect.stringMatching(/^\+schedule-\d$/), `+schedules/${id}`]])
    expect(rows()[0]?.data).toMatchObject({ next: START + 2 * MINUTE, fired: 1 })
    writes.length = 0
    await pass(30 * SECOND)
    expect(writes).toEqual([[`-schedules/${once.id}`, expect.stringMatching(/^\+schedule-\d$/)]])
  })

  it('F16: fires in one write with the launch of its task, which starts when that is stored', async () => {
    const { schedule, pass, writes, manager, rows, runs } = storedTasks()
    const { id } = schedule({ every: MINUTE, ...launch })
    await manager.stored()
    writes.length = 0
    await pass(MINUTE)
    const taskId = runs[0]?.input.id
    expect(writes[0]).toEqual([`+${taskId}`, `+schedules/${id}`])
    expect(rows()[0]?.data).toMatchObject({ fired: 1, lastTaskId: taskId })
  })

  it('F16: goes on in the next process, whose start writes nothing of it', async () => {
    const { schedule, manager, next } = storedTasks()
    const { id } = schedule({ every: HOUR, ...wake })
    await manager.stored()
    const second = await next(START + 30 * MINUTE)
    expect(second.writes).toEqual([])
    expect(second.manager.schedules()).toMatchObject([{ id, next: START + HOUR }])
    await second.pass(30 * MINUTE)
    expect(second.notes()).toEqual([
      expect.stringMatching(/^look\n\n\(schedule \S+, due 2027-01-04 13:00:00 [^;]*; next/),
    ])
    const third = await second.next(START + HOUR + MINUTE)
    await third.pass(MINUTE)
    expect(third.notes()).toHaveLength(1)
  })

  it.each([
    ['one', 90 * MINUTE, '1 firing fell due while the host was not running; next 2027-01-04 14:00:00'],
    ['many', 5 * HOUR + MINUTE, '5 firings fell due while the host was not running; next 2027-01-04 18:00:00'],
    ['one, a moment ago', HOUR + SECOND, '1 firing fell due while the host was not running; next 2027-01-04 14:00:00'],
  ])('F16: stands once for %s that fell due while no process ran, and says how many', async (_, later, text) => {
    const { schedule, manager, next } = storedTasks()
    schedule({ every: HOUR, ...wake })
    schedule({ every: HOUR, message: 'skipped', missed: 'skip' })
    await manager.stored()
    const second = await next(START + later)
    expect(second.notes()).toEqual([expect.stringContaining(text)])
    await second.pass(2 * HOUR)
    expect(second.notes().filter((note) => note.startsWith('skipped'))).toHaveLength(2)
    expect(second.notes().filter((note) => note.startsWith('look'))).toHaveLength(3)
  })

  it('F16: that was to fire once fires late, or not at all with missed: skip', async () => {
    const { schedule, manager, next } = storedTasks()
    schedule({ in: HOUR, ...wake })
    schedule({ in: HOUR, message: 'never', missed: 'skip' })
    schedule({ in: HOUR, ...launch })
    await manager.stored()
    const second = await next(START + 48 * HOUR)
    expect(second.notes()).toEqual([expect.stringMatching(/^look.*due 2027-01-04 13:00:00 .*1 firing fell due/s)])
    expect(second.runs).toHaveLength(1)
    expect([second.manager.schedules(), second.rows()]).toEqual([[], []])
  })

  it('F16: does not fire again in the next process, whichever write was the last', async () => {
    const first = storedTasks()
    const copies: MemoryStore[] = []
    const write = first.store.write.bind(first.store)
    first.store.write = async (changes) => {
      copies.push(first.store.copy())
      await write(changes)
      copies.push(first.store.copy())
    }
    first.schedule({ every: MINUTE, ...wake })
    first.schedule({ at: new Date(START + 2 * MINUTE), message: 'once' })
    first.schedule({ cron: '* * * * *', overlap: 'allow', ...launch })
    await first.manager.stored()
    await first.pass(3 * MINUTE)
    expect(copies.length).toBeGreaterThanOrEqual(8)
    for (const copy of copies.filter((each) => each.contents().featureStates.length > 0)) {
      const before = copy.contents()
      const { tasks, featureStates } = before
      const states = featureStates.map(
        ({ data }) => data as StoredJson & { every?: number; cron?: string; fired: number },
      )
      const firedOf = (isMeant: (state: StoredJson) => boolean) => states.find(isMeant)?.['fired']
      const isNote =
        (text: string) =>
        ({ record }: { record: StoredJson }) =>
          JSON.stringify(record['output'] ?? '').includes(text)
      // What has fired and what is owed are in the same write.
      expect(tasks.filter(isNote('look'))).toHaveLength(Number(firedOf(({ every }) => every !== undefined)))
      expect(tasks.filter(({ record }) => record['subagentName'] === 'scout')).toHaveLength(
        Number(firedOf(({ cron }) => cron !== undefined)),
      )
      const next = storedTasks(copy.copy(), START + 3 * MINUTE)
      await next.manager.recovered
      next.clock.advance(0)
      await tick()
      expect(next.notes().filter((note) => note.startsWith('once'))).toHaveLength(1)
    }
  })

  it('F16: does not overlap with its last task after a restart', async () => {
    const retry = { attempts: 2, on: ['interrupted'] } as const
    const options = { findRunner: () => ({ run: untilAborted, retry }) }
    const { schedule, pass, next } = storedTasks(memoryStore(), START, options)
    schedule({ every: MINUTE, ...launch })
    await pass(MINUTE)
    const second = await next(START + 90 * SECOND, options)
    await second.pass(MINUTE)
    expect(second.manager.getAllTasks()).toHaveLength(1)
    expect(second.manager.schedules()).toMatchObject([{ fired: 1, skippedFirings: 1 }])
  })

  it('F16: passes to the owner of the task whose run had it', async () => {
    const { schedule, manager, next } = storedTasks()
    manager.registerTask({ id: 'a', subagentName: 'scout', goalPrompt: 'g', owner: 'ada' })
    schedule({ in: HOUR, owner: 'run:a', ...wake })
    await manager.stored()
    const second = await next(START + MINUTE)
    expect(second.manager.schedules()).toMatchObject([{ owner: 'ada' }])
    await second.manager.stored()
    expect(second.rows()).toMatchObject([{ data: { owner: 'ada' } }])
  })

  it('F16: stays with a run that is still to come, and passes on when that ends', async () => {
    const options = { maxAsyncTasks: 0, whenFull: 'queue' } as const
    const { schedule, manager, next } = storedTasks(memoryStore(), START, options)
    manager.launch({ id: 'a', subagentName: 'scout', goalPrompt: 'g', owner: 'ada' }, untilAborted)
    schedule({ in: HOUR, owner: 'run:a', ...wake })
    await manager.stored()
    const second = await next(START + MINUTE, options)
    expect(second.manager.schedules()).toMatchObject([{ owner: 'run:a' }])
    second.manager.cancelTask('a')
    expect(second.manager.schedules()).toMatchObject([{ owner: 'ada' }])
  })

  it('F16: moves and ends with its owner in the store', async () => {
    const { schedule, manager, rows } = storedTasks()
    schedule({ in: HOUR, owner: 'ada', ...wake })
    schedule({ in: HOUR, owner: 'bob', ...wake })
    manager.releaseOwner('ada', { to: 'eve' })
    manager.releaseOwner('bob')
    await manager.stored()
    expect(rows()).toMatchObject([{ data: { owner: 'eve' } }])
  })

  it('F16: waits no longer than it was to wait in all when the clock was set back', async () => {
    const { schedule, manager, next } = storedTasks()
    schedule({ in: HOUR, ...wake })
    await manager.stored()
    const second = await next(START - 24 * HOUR)
    await second.pass(HOUR + MINUTE)
    expect(second.notes()).toHaveLength(1)
  })

  it.each<[string, object, RegExp]>([
    ['a time that is none', { next: 'soon' }, /row\.next: got "soon", expected a number/],
    ['no owner', { owner: undefined }, /row\.owner/],
    ['a message of a megabyte', { message: 'x'.repeat(1_000_000) }, /row\.message/],
    ['a count that is none', { fired: -1 }, /row\.fired/],
    ['no period', { every: 0 }, /row\.every: got 0, expected at least 1000/],
    ['a time before all others', { next: -1e300, every: 1000 }, /row\.next/],
    ['an unknown zone', { timeZone: 'nowhere' }, /row\.timeZone: got "nowhere"/],
  ])('F16: whose row has %s is reported and dropped, and the others go on', async (_, change, message) => {
    const { schedule, manager, store, next, rows } = storedTasks()
    schedule({ in: HOUR, ...wake })
    await manager.stored()
    const { id, data } = rows()[0] ?? { id: '', data: {} }
    await store.write([
      { table: 'featureStates', put: { id: 'schedules/bad', feature: 'schedules', data: { ...data, ...change } } },
    ])
    const second = await next(START + MINUTE)
    expect(second.errors).toEqual([
      { error: expect.objectContaining({ code: 'STORE_DAMAGED' }) as Error, source: 'store' },
    ])
    expect(String(second.errors[0]?.error)).toMatch(message)
    await second.manager.stored()
    expect(second.rows().map((row) => row.id)).toEqual([id])
  })
})

describe('a scheduled task', () => {
  const task = { subagent: 'scout', goal: 'look' }

  it('F16: has the fields for its run in its row under the names that every version reads', async () => {
    const { schedule, rows, next } = storedTasks()
    const further = { context: { depth: 2 }, cwd: '/project', toolWhitelist: ['read'] }
    schedule({ every: HOUR, launch: { ...task, ...further } })
    const { context, cwd, toolWhitelist } = further
    await tick()
    expect(rows().map(({ data }) => data['launch'])).toEqual([
      { ...task, params: { context, cwd, tool_whitelist: toolWhitelist } },
    ])
    const { manager } = await next(START + MINUTE)
    expect(manager.schedules()).toMatchObject([{ launch: { ...task, ...further } }])
  })

  it('F16: of an earlier version has its params as context', async () => {
    const { schedule, store, rows, next } = storedTasks()
    schedule({ every: HOUR, launch: task })
    await tick()
    const { data } = rows()[0] ?? { data: {} }
    const old = { ...data, launch: { ...task, params: { depth: 2 } } }
    await store.write([{ table: 'featureStates', put: { id: 'schedules/old', feature: 'schedules', data: old } }])
    const { manager } = await next(START + MINUTE)
    expect(manager.schedules().find(({ id }) => id === 'old')?.launch).toEqual({ ...task, context: { depth: 2 } })
  })
})

describe('a store that cannot be written', () => {
  it('F16: a task that was not launched because of that is owed as a note, in one write with the schedule', async () => {
    const { memory, store, state } = breakableStore()
    const { schedule, pass, manager, notes, runs } = scheduledTasks({ store })
    schedule({ every: MINUTE, ...launch })
    await manager.stored()
    state.isBroken = true
    await pass(MINUTE)
    expect(notes()).toEqual([
      'The scheduled task was not launched (scout: look around): The task could not be stored and was not started: the disk is full',
    ])
    state.isBroken = false
    state.writes = 0
    await pass(SECOND)
    expect([runs.length, state.writes]).toEqual([0, 1])
    expect(memory.contents().tasks).toMatchObject([{ record: { isNote: true } }])
    expect(memory.contents().featureStates).toMatchObject([{ data: { next: START + 2 * MINUTE } }])
  })
})
