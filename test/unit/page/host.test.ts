/** The schedules, the monitors and the pauses of a host on the page. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskManagerOptions } from 'agent-tasks'
import { InstanceManager, TaskManager } from 'agent-tasks/server'
import { memoryStore } from 'agent-tasks/store'
import { createManualClock } from 'agent-tasks/testing'
import { hostRows } from '../../../src/page/page-features.js'
import type { HostRow } from '../../../src/page/wire.js'
import { breakableStore } from '../../support/breakable-store.js'
import { startPage, type Reader } from './test-page.js'

const START = Date.UTC(2027, 0, 4, 12)
const HOUR = 3_600_000
const ofPage = 'by the page; results are'

function setUp(options: AsyncTaskManagerOptions = {}) {
  const { clock = createManualClock(START) } = options as { clock?: ReturnType<typeof createManualClock> }
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, ...options, clock })
  onTestFinished(() => manager.dispose())
  const launch = (id: string) => manager.registerTask({ id, subagentName: 'scout', goalPrompt: 'look' })
  const schedule = (owner = 'main') =>
    manager.schedule({ every: HOUR, message: 'look', timeZone: 'Europe/Berlin', owner })
  return { manager, clock, launch, schedule }
}

async function onPage(options?: AsyncTaskManagerOptions) {
  const host = setUp(options)
  const page = await startPage({ tasks: host.manager, clock: host.clock })
  const open = async (lastEventId?: string) => {
    const reader = await page.read(lastEventId)
    await reader.until(({ ready }) => ready !== undefined)
    return reader
  }
  return { ...host, ...page, open }
}

/** What a reader has last got. */
const idsOf = ({ events }: Reader): string[] | undefined => {
  const hosts = events.flatMap(({ data }) => ('host' in data ? [data.host ?? []] : []))
  return hosts.at(-1)?.map(({ id }: HostRow) => id)
}
const hostEvents = ({ events }: Reader): number => events.filter(({ data }) => 'host' in data).length

describe('the rows of a host', () => {
  it('say who has paused, when a schedule fires in its zone and what it does, and what a monitor reads and looks for', async () => {
    const { manager, clock, launch, schedule } = setUp({ monitors: { files: [import.meta.dirname] } })
    manager.pause()
    manager.pause('ada', { deliveries: 'hold', by: '/pause' })
    const { id } = schedule('ada')
    clock.advance(100)
    launch('a')
    const monitors = [
      manager.monitor({ taskId: 'a' }, { match: 'error', description: 'errors' }),
      manager.monitor({ taskId: 'a' }, { match: ['one', 'two'], seconds: 10 }),
      manager.monitor({ file: import.meta.filename }, { match: { regex: 'a+', flags: 'i' } }),
    ].map((monitor) => monitor.id)
    expect(hostRows(manager)).toEqual([
      { kind: 'pauses', id: 'all', owner: '', at: START, detail: 'by code of the host; results are sent' },
      { kind: 'pauses', id: 'owner:ada', owner: 'ada', at: START, detail: 'by /pause; results are held' },
      {
        kind: 'schedules',
        id,
        owner: 'ada',
        at: START + HOUR,
        detail: `${id} (every 3600 s), next 2027-01-04 14:00:00 GMT+01:00 (Europe/Berlin) - message: look`,
      },
      {
        kind: 'monitors',
        id: monitors[0],
        owner: 'main',
        at: START + 300_100,
        detail: `${monitors[0]} (task a), 0 event(s) - errors: "error"`,
      },
      {
        kind: 'monitors',
        id: monitors[1],
        owner: 'main',
        at: START + 10_100,
        detail: `${monitors[1]} (task a), 0 event(s) - ["one","two"]`,
      },
      {
        kind: 'monitors',
        id: monitors[2],
        owner: 'main',
        at: START + 300_100,
        detail: `${monitors[2]} (file ${import.meta.filename}), 0 event(s) - "/a+/i"`,
      },
    ])
  })

  it('show the beginning of what a monitor looks for', () => {
    const { manager, launch } = setUp()
    launch('a')
    const { id } = manager.monitor({ taskId: 'a' }, { match: Array.from({ length: 10 }, () => 'x'.repeat(500)) })
    expect(hostRows(manager)[0]?.detail).toHaveLength(`${id} (task a), 0 event(s) - `.length + 200)
  })

  it('are at most 1,000 schedules, those that fire first, and 1,000 monitors, and every pause', () => {
    const { manager, launch, schedule } = setUp()
    launch('a')
    schedule()
    manager.monitor({ taskId: 'a' }, { match: 'x' })
    const many = <T>(one: T | undefined): T[] =>
      Array.from({ length: 1001 }, (_, index) => Object.assign({}, one, { id: `${index}` }) as T)
    const rows = hostRows({
      pauses: () => many(manager.pause('ada')),
      schedules: () => many(manager.schedules()[0]),
      monitors: () => many(manager.monitors()[0]),
    } as never)
    const kinds = (['pauses', 'schedules', 'monitors'] as const).map((kind) => rows.filter((row) => row.kind === kind))
    expect(kinds.map(({ length }) => length)).toEqual([1001, 1000, 1000])
    expect(kinds.slice(1).map(([row]) => row?.id)).toEqual(['0', '0'])
  })

  it('say how many firings were missed and skipped', async () => {
    const clock = createManualClock(START)
    const store = memoryStore()
    const { manager } = setUp({ store, clock })
    manager.schedule({ every: HOUR, message: 'look', timeZone: 'UTC' })
    await manager.stored()
    const next = setUp({ store: store.copy(), clock: createManualClock(START + 3 * HOUR) })
    await next.manager.recovered
    next.clock.advance(1)
    expect(hostRows(next.manager)[0]?.detail).toContain('(every 3600 s, 3 missed), next 2027-01-04 16:00:00')
  })
})

describe('the page of a host', () => {
  it('has all rows at first, and then what has changed, whole, within a second', async () => {
    const { manager, clock, launch, schedule, open } = await onPage()
    const { id } = schedule()
    const reader = await open()
    expect(reader.ready?.host.map((row) => row.id)).toEqual([id])
    const second = schedule()
    clock.advance(1050)
    await reader.until((each) => idsOf(each)?.length === 2)
    launch('a')
    const monitor = manager.monitor({ taskId: 'a' }, { match: 'x' })
    manager.pause('ada')
    clock.advance(1050)
    await reader.until((each) => idsOf(each)?.length === 4)
    expect(idsOf(reader)).toEqual(['owner:ada', id, second.id, monitor.id])
    const before = hostEvents(reader)
    launch('b')
    clock.advance(3000)
    await reader.until(({ tasks }) => tasks.has('async:b'))
    expect(hostEvents(reader)).toBe(before)
    // A firing changes its row.
    manager.schedule({ every: 10_000, message: 'look', owner: 'ada' })
    clock.advance(1050)
    await reader.until((each) => hostEvents(each) === before + 1)
    clock.advance(10_000)
    await reader.until((each) => hostEvents(each) === before + 2)
  })

  it('G4: has what has changed while a reader was away', async () => {
    const { manager, schedule, open } = await onPage()
    const { id } = schedule()
    const reader = await open()
    reader.close()
    manager.cancelSchedule(id)
    const resumed = await open(reader.lastEventId)
    expect(resumed.events[0]).toMatchObject({ type: 'hello', data: { resumed: true } })
    expect(idsOf(resumed)).toEqual([])
  })

  it('F16: cancels a schedule, and sends that at once', async () => {
    const { manager, clock, schedule, open, post } = await onPage()
    const [first, second] = [schedule(), schedule()]
    const reader = await open()
    expect(await post(`schedules/${first.id}/cancel`)).toMatchObject({ status: 200, body: {} })
    expect(manager.schedules().map(({ id }) => id)).toEqual([second.id])
    clock.advance(50)
    await reader.until((each) => idsOf(each)?.length === 1)
    const again = await post(`schedules/${first.id}/cancel`)
    expect(again).toMatchObject({ status: 409, body: { code: 'ENDED' } })
    expect(clock.now()).toBe(START + 50)
  })

  it('F17: cancels a monitor, and its owner is notified', async () => {
    const { manager, launch, post } = await onPage()
    launch('a')
    const [one, other] = [1, 2].map(() => manager.monitor({ taskId: 'a' }, { match: 'x' }))
    expect(await post(`monitors/${one?.id}/cancel`)).toMatchObject({ status: 200 })
    expect(manager.monitors().map(({ id }) => id)).toEqual([other?.id])
    const [note] = manager.getPendingNotifications()
    expect(note?.output?.final_message).toContain('it was cancelled: on the page')
    expect(await post(`monitors/${one?.id}/cancel`)).toMatchObject({ status: 409, body: { code: 'ENDED' } })
  })

  it('F19: pauses and resumes all, and resumes an owner', async () => {
    const { manager, post } = await onPage()
    expect(await post('pauses/all/pause', { deliveries: 'hold' })).toMatchObject({ status: 200 })
    expect(manager.pauses()).toEqual([{ deliveries: 'hold', since: START, by: 'the page' }])
    expect(hostRows(manager)).toMatchObject([{ detail: `${ofPage} held` }])
    manager.pause('all')
    expect(await post('pauses/all/resume')).toMatchObject({ status: 200 })
    // An owner may be called "all".
    expect(manager.pauses()).toMatchObject([{ owner: 'all' }])
    expect(await post('pauses/owner%3Aall/resume')).toMatchObject({ status: 200 })
    expect(manager.pauses()).toEqual([])
    expect(await post('pauses/all/resume')).toMatchObject({ status: 409, body: { code: 'ENDED' } })
    expect(await post('pauses/owner%3Aada/pause')).toMatchObject({ status: 200 })
    expect(manager.pauses()).toMatchObject([{ owner: 'ada', deliveries: 'send' }])
  })

  it('stores what it has done before it answers', async () => {
    const store = memoryStore()
    const { manager, schedule, post } = await onPage({ store })
    const { id } = schedule()
    await manager.stored()
    await post(`schedules/${id}/cancel`)
    await post('pauses/all/pause')
    const rows = store.copy().contents().featureStates
    expect(rows).toMatchObject([{ id: 'pauses/all', data: { by: 'the page' } }])
  })

  it('says when what it has done cannot be stored', async () => {
    const { store, state } = breakableStore()
    const { manager, schedule, post } = await onPage({ store, onError: () => undefined })
    const { id } = schedule()
    await manager.stored()
    state.isBroken = true
    expect(await post(`schedules/${id}/cancel`)).toMatchObject({ status: 409, body: { code: 'STORE_FULL' } })
    expect(manager.schedules()).toEqual([])
    state.isBroken = false
    await manager.stored()
  })

  it('refuses what it does not know, with nothing changed', async () => {
    const { manager, schedule, post } = await onPage()
    const { id } = schedule()
    const refused: [string, unknown, number, string][] = [
      [`schedules/${id}/cancel`, { reason: 'x' }, 400, 'INVALID_INPUT'],
      [`schedules/${id}/pause`, {}, 404, 'NOT_FOUND'],
      [`schedules/${id}/cancel/now`, {}, 404, 'NOT_FOUND'],
      ['schedules/__proto__/cancel', {}, 409, 'ENDED'],
      ['monitors/x/cancel', {}, 409, 'ENDED'],
      ['pauses/all/pause', { deliveries: 'later' }, 400, 'INVALID_INPUT'],
      ['pauses/all/pause', { by: 'me' }, 400, 'INVALID_INPUT'],
      ['pauses/all/resume', { deliveries: 'hold' }, 400, 'INVALID_INPUT'],
      ['pauses/owner%3Arun%3Ax/pause', {}, 400, 'INVALID_INPUT'],
    ]
    for (const [path, body, status, code] of refused) {
      expect([path, await post(path, body)]).toMatchObject([path, { status, body: { code } }])
    }
    expect([manager.schedules().length, manager.pauses()]).toEqual([1, []])
  })

  it('has no rows without async tasks, and ends none', async () => {
    const instances = new InstanceManager()
    const taskManager = new TaskManager({ instances })
    onTestFinished(() => taskManager.dispose())
    const { read, post } = await startPage({ taskManager })
    const reader = await read()
    await reader.until(({ ready }) => ready !== undefined)
    expect(reader.ready?.host).toEqual([])
    expect(await post('pauses/all/pause')).toMatchObject({ status: 409, body: { code: 'ENDED' } })
  })
})
