/** The owners of the page are bounded, and whom something is owed is shown first: G2. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type AsyncTaskManagerOptions, type Runner } from 'agent-tasks'
import { createManualClock } from 'agent-tasks/testing'
import { PageState } from '../../../src/page/page-state.js'
import type { OwnerDelivery } from '../../../src/page/wire.js'
import { deliveryStates } from '../../../src/features/delivery/delivery-states.js'
import { waitFor } from '../../support/wait-for.js'
import { ownerOfRun } from '../../../src/parts.js'

const MIB = 1024 * 1024

function withState(options: AsyncTaskManagerOptions & { readonly maxTasks?: number } = {}) {
  const { maxTasks = 10_000, ...rest } = options
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock, onError: () => undefined, ...rest })
  const state = new PageState({ manager, taskManager: undefined, maxTasks, maxBytes: 64 * MIB, now: () => clock.now() })
  onTestFinished(async () => {
    state.stop()
    await manager.dispose()
  })
  const owe = (owner: string, id = `task-of-${owner}`): void => {
    manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'x', owner })
    manager.completeTask(id, {})
  }
  const shown = (owner: string): OwnerDelivery | undefined => state.ready().owners.find((one) => one.owner === owner)
  return { clock, manager, state, owe, shown }
}

const names = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `owner-${from + index}`)

describe('the owners', () => {
  it('G2: are at most 1,000; those that are owed nothing go first, the first of them first', () => {
    const { manager, state, owe, shown } = withState()
    for (const name of names(0, 1000)) owe(name)
    manager.markNotified('task-of-owner-7')
    manager.markNotified('task-of-owner-3')
    owe('other')
    expect([shown('owner-7'), shown('owner-3')?.delivered, shown('other')?.owed]).toEqual([undefined, 1, 1])
    owe('another')
    expect([shown('owner-3'), shown('another')?.owed]).toEqual([undefined, 1])
    expect(state.ready()).toMatchObject({ ownersLeftOut: 0, owners: { length: 1000 } })
  })

  it('G2: that are owed something are never left out for those that are not, and the page says how many are', () => {
    const { manager, state, owe, shown } = withState()
    const before = state.version
    for (const name of names(0, 1200)) owe(name)
    expect(state.ready()).toMatchObject({ ownersLeftOut: 200, owners: { length: 1000 } })
    expect(state.since(before)?.rest.ownersLeftOut).toBe(200)
    expect(shown('owner-1000')).toBeUndefined()
    // One that is left out is owed nothing any more.
    manager.markNotified('task-of-owner-1001')
    expect(state.ready().ownersLeftOut).toBe(199)
    // Those that are left out come in place of those that are owed nothing any more.
    for (const name of names(0, 150)) manager.markNotified(`task-of-${name}`)
    expect([shown('owner-0'), shown('owner-1000')?.waiting]).toEqual([undefined, ['async:task-of-owner-1000']])
    expect(state.ready().ownersLeftOut).toBe(49)
    for (const name of names(150, 250)) manager.markNotified(`task-of-${name}`)
    const { owners, ownersLeftOut } = state.ready()
    expect([owners.length, ownersLeftOut]).toEqual([1000, 0])
    expect(owners.filter(({ owed }) => owed > 0)).toHaveLength(949)
    // An owner without results is not worth more than one that has had some, and is not counted.
    manager.registerTask({ id: 'x', subagentName: 'helper', goalPrompt: 'x', owner: 'new' })
    expect([shown('new')?.owed, state.ready().ownersLeftOut]).toEqual([0, 0])
  })

  it('G2: that are owed something stay also when the journal has forgotten their tasks', () => {
    const { manager, state, owe, shown } = withState({ maxTasks: 10 })
    for (const name of names(0, 1000)) owe(name)
    manager.lease({ owner: 'owner-0' })?.release()
    owe('other')
    expect([shown('owner-0')?.owed, shown('other'), state.ready().ownersLeftOut]).toEqual([1, undefined, 1])
  })

  it('G2: take the same work for each change, however many there are', () => {
    const { manager, owe } = withState()
    for (const name of names(0, 1100)) owe(name)
    const { ledger } = manager.registry
    const states = manager.registry.use(deliveryStates)
    const spies = [vi.spyOn(ledger, 'countOf'), vi.spyOn(states, 'of')]
    for (const name of names(1100, 1200)) owe(name)
    for (const name of names(0, 100)) manager.markNotified(`task-of-${name}`)
    expect(spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBeLessThan(200 * 20)
  })

  it('are told of what they are owed also when the journal has forgotten the task', () => {
    const { manager, owe, shown } = withState({ maxTasks: 1 })
    owe('a')
    owe('b')
    expect(shown('a')).toMatchObject({ owed: 1, waiting: [] })
    manager.lease({ owner: 'a' })?.acknowledge()
    expect(shown('a')).toMatchObject({ owed: 0, delivered: 1, waiting: [], messages: [{ outcome: 'accepted' }] })
    manager.releaseOwner('b', { to: 'c' })
    expect([shown('b')?.owed, shown('c')?.owed]).toEqual([0, 1])
  })

  it('are those whose results were delivered before, and those to whom something is handed over', () => {
    const { manager, owe, shown, clock, state } = withState()
    owe('a')
    owe('b')
    manager.markNotified('task-of-b')
    clock.advance(250)
    const before = state.version
    manager.releaseOwner('a', { to: 'heir' })
    clock.advance(250)
    const sent = state.since(before)?.rest.owners?.map(({ owner, owed }) => [owner, owed])
    expect(sent).toContainEqual(['a', 0])
    expect(sent).toContainEqual(['heir', 1])
    expect([shown('a'), shown('heir')]).toMatchObject([
      { owed: 0, waiting: [], reason: 'No result waits for delivery.' },
      { owed: 1, waiting: ['async:task-of-a'] },
    ])
    const later = new PageState({
      manager,
      taskManager: undefined,
      maxTasks: 10,
      maxBytes: MIB,
      now: () => clock.now(),
    })
    onTestFinished(() => later.stop())
    expect(later.ready().owners).toMatchObject([
      { owner: 'heir', owed: 1, waiting: ['async:task-of-a'] },
      { owner: 'b', delivered: 1 },
    ])
  })

  it('that are runs are there while they are owed something, and once a message has carried it', async () => {
    const { manager, state, shown } = withState()
    const ends: (() => void)[] = []
    const children = ['taken', 'handed', 'told'] as const
    manager.launch({ id: 'parent', subagentName: 'parent', goalPrompt: 'x' }, async (_input, context) => {
      const launched = children.map((id) => context.launch({ id, subagentName: 'child', goalPrompt: 'y' }, () => ({})))
      await new Promise<void>((resolve) => ends.push(resolve))
      await context.children.waitFor(launched.slice(2).map(({ id }) => id))
      return {}
    })
    const run = ownerOfRun('parent')
    await expect.poll(() => children.map((id) => manager.getTask(id)?.status)).toEqual(children.map(() => 'completed'))
    expect(shown(run)).toMatchObject({
      owed: 3,
      reason: expect.stringContaining('The run of task "parent"') as unknown,
    })
    manager.markNotified('taken')
    expect(shown(run)).toMatchObject({ owed: 2, delivered: 1 })
    const before = state.version
    for (const id of ['handed', 'told']) manager.markNotified(id)
    expect(shown(run)).toBeUndefined()
    expect(state.since(before)?.rest.removedOwners).toEqual([run])
    ends[0]?.()
    await expect.poll(() => manager.getTask('parent')?.status).toBe('completed')
    expect([shown(run), shown('main')?.owed]).toEqual([undefined, 1])
  })

  it('that are runs stay when a message has carried results to them', async () => {
    const { manager, shown } = withState()
    manager.launch({ id: 'parent', subagentName: 'parent', goalPrompt: 'x' }, async (_input, context) => {
      context.launch({ id: 'child', subagentName: 'child', goalPrompt: 'y' }, () => ({}))
      await context.children.waitFor()
      return {}
    })
    await expect.poll(() => manager.getTask('parent')?.status).toBe('completed')
    expect(shown(ownerOfRun('parent'))).toMatchObject({ owed: 0, delivered: 1, messages: [{ outcome: 'accepted' }] })
  })

  it('that are runs have a message also when all of it happened at once', async () => {
    const { manager, shown } = withState()
    const ends: (() => void)[] = []
    const untilEnded: Runner = () => new Promise((resolve) => ends.push(() => resolve({})))
    manager.launch({ id: 'parent', subagentName: 'parent', goalPrompt: 'x' }, (input, context) => {
      context.launch({ id: 'child', subagentName: 'child', goalPrompt: 'y' }, untilEnded)
      return untilEnded(input, context)
    })
    await expect.poll(() => manager.getTask('child')?.status).toBe('running')
    manager.registry.batch(() => {
      manager.completeTask('child', {})
      manager.lease({ owner: ownerOfRun('parent') })?.acknowledge()
    })
    expect(shown(ownerOfRun('parent'))).toMatchObject({ owed: 0, delivered: 1, messages: [{ outcome: 'accepted' }] })
    await expect.poll(() => ends.length).toBe(2)
    for (const end of ends) end()
    await expect.poll(() => manager.getTask('parent')?.status).toBe('completed')
  })

  it('are sent at most every 250 ms, and a hundred of them each time', () => {
    const { clock, state, owe, manager } = withState()
    const changed: number[] = []
    const read = (from: number): number => {
      changed.push(state.since(from)?.rest.owners?.length ?? 0)
      return state.version
    }
    for (const name of names(0, 300)) owe(name)
    clock.advance(250)
    clock.advance(250)
    clock.advance(250)
    clock.advance(250)
    let version = read(0)
    const emitted = vi.fn()
    state.changed$.subscribe(emitted)
    for (const name of names(0, 300)) manager.markNotified(`task-of-${name}`)
    version = read(version)
    for (const name of names(0, 300)) owe(name, `again-${name}`)
    version = read(version)
    emitted.mockClear()
    for (let step = 0; step < 5; step += 1) {
      clock.advance(250)
      version = read(version)
    }
    expect(changed).toEqual([300, 1, 0, 100, 100, 100, 0, 0])
    expect(emitted).toHaveBeenCalledTimes(3)
    owe('owner-5', 'once more')
    expect(state.since(version)?.rest.owners).toMatchObject([{ owner: 'owner-5', owed: 2 }])
  })

  it('G2: have their last messages, within 16 KiB, and list what waits within 16 KiB', () => {
    const { manager, owe, shown } = withState()
    const long = 'x'.repeat(400)
    for (let index = 0; index < 100; index += 1) owe('a', `${long}-${index}`)
    expect(shown('a')).toMatchObject({ owed: 100 })
    expect(shown('a')?.waiting).toHaveLength(Math.floor((16 * 1024) / 409))
    for (let index = 0; index < 60; index += 1) manager.lease({ owner: 'a' })?.release()
    manager.lease({ owner: 'a' })?.acknowledge()
    const { messages = [], delivered } = shown('a') ?? {}
    expect([delivered, messages[0]]).toMatchObject([100, { outcome: 'accepted' }])
    expect(JSON.stringify(messages).length).toBeLessThan(16 * 1024)
    expect(messages.map(({ tasks }) => tasks.length)).toEqual([9, 9, 9, 9])
    for (let index = 0; index < 60; index += 1) {
      owe('b', `b-${index}`)
      manager.lease({ owner: 'b' })?.release()
    }
    expect(shown('b')?.messages.length).toBeLessThanOrEqual(50)
  })
})

describe('why a result waits', () => {
  it.each([
    ['its agent is busy', { isAgentBusy: () => true }, 'The agent is busy (isAgentBusy)'],
    [
      'a message is in flight',
      { triggerAgentTurn: () => new Promise<void>(() => undefined) },
      'A message is being delivered',
    ],
  ])('%s', async (_why, how, reason) => {
    const clock = createManualClock()
    const tasks = createAgentTasks({
      clock,
      onError: () => undefined,
      isAgentBusy: () => false,
      triggerAgentTurn: () => undefined,
      ...how,
    })
    const manager = tasks.getAsyncTaskManager()
    const state = new PageState({
      manager,
      taskManager: undefined,
      maxTasks: 10,
      maxBytes: MIB,
      now: () => clock.now(),
    })
    onTestFinished(async () => {
      state.stop()
      await tasks.dispose()
    })
    clock.advance(1)
    manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
    manager.completeTask('a', {})
    await waitFor(() => {
      clock.advance(50)
      expect(state.ready().owners[0]?.reason).toContain(reason)
    })
  })

  it('is said of a lease that the host has taken, of a host that delivers, and of one that does not', () => {
    const { manager, owe, shown } = withState()
    owe('a')
    expect(shown('a')?.reason).toContain('No auto-trigger is subscribed for "a"')
    const lease = manager.lease({ owner: 'a' })
    expect(shown('a')).toMatchObject({ leased: 1, reason: expect.stringContaining('is being delivered') as unknown })
    lease?.release()
  })
})
