/** What the page knows, out of the events of its stream. */
import { describe, expect, it } from 'vitest'
import { createFeed } from '../../../src/page/app/stream/feed.js'
import { createTaskList } from '../../../src/page/app/stream/task-list.js'
import type { HealthPoint, OwnerDelivery } from '../../../src/page/wire.js'
import { pageTask } from './page-tasks.js'

const owner = (name: string, owed = 0): OwnerDelivery => ({
  owner: name,
  owed,
  leased: 0,
  delivered: 0,
  state: 'idle',
  reason: '',
  messages: [],
  waiting: [],
})
const point = (at: number, started = 0): HealthPoint => ({
  at,
  started,
  completed: 0,
  failed: 0,
  cancelled: 0,
  running: 0,
  queued: 0,
  owed: 0,
})
const NOTHING = { owners: [], host: [], instances: [], machines: {}, health: [] }

function setUp() {
  const feed = createFeed()
  const take = (event: string, data: unknown) => feed.take({ id: '', event, data: JSON.stringify(data) })
  const keys = (): string[] =>
    feed
      .known()
      .tasks.newestFirst()
      .map(({ key }) => key)
  const hello = (resumed = false) => take('hello', { now: 5, resumed })
  return { feed, take, keys, hello }
}

describe('the feed of the page', () => {
  it('shows a snapshot when it is whole, and not before', () => {
    const { take, keys, hello } = setUp()
    expect(hello()).toEqual({ now: 5, isWhole: false, hasChanged: false })
    take('tasks', { tasks: [pageTask({ id: 'b', createdAt: 2 })] })
    expect(keys()).toEqual([])
    take('tasks', { tasks: [pageTask({ id: 'a', createdAt: 1 })] })
    expect(take('ready', NOTHING)).toEqual({ isWhole: true, hasChanged: true })
    expect(keys()).toEqual(['async:b', 'async:a'])
  })

  it('replaces all with a later snapshot, and keeps what it has when it resumes', () => {
    const { take, keys, hello } = setUp()
    hello()
    take('tasks', { tasks: [pageTask({ id: 'a' })] })
    take('ready', NOTHING)
    hello(true)
    take('changes', { now: 6, tasks: [pageTask({ id: 'b' })] })
    take('ready', NOTHING)
    expect(keys()).toEqual(['async:b', 'async:a'])
    hello()
    take('tasks', { tasks: [pageTask({ id: 'c' })] })
    take('ready', NOTHING)
    expect(keys()).toEqual(['async:c'])
  })

  it('keeps its tasks at the end of changes that came in pieces', () => {
    const { take, keys, hello } = setUp()
    hello()
    take('tasks', { tasks: [pageTask({ id: 'a' })] })
    take('ready', NOTHING)
    take('changes', { now: 6, tasks: [pageTask({ id: 'b' })] })
    take('ready', NOTHING)
    expect(keys()).toEqual(['async:b', 'async:a'])
  })

  it('forgets the half of a snapshot that broke off', () => {
    const { take, keys, hello } = setUp()
    hello()
    take('tasks', { tasks: [pageTask({ id: 'a' })] })
    hello()
    take('tasks', { tasks: [pageTask({ id: 'b' })] })
    take('ready', NOTHING)
    expect(keys()).toEqual(['async:b'])
  })

  it('changes, adds and removes tasks, and an older change does not undo a later one', () => {
    const { feed, take, keys, hello } = setUp()
    const task = pageTask({ id: 'a', seq: 10 })
    hello()
    take('tasks', { tasks: [task, pageTask({ id: 'b' })] })
    take('ready', NOTHING)
    take('changes', { now: 6, tasks: [{ ...task, state: 'completed', seq: 12 }], removed: ['async:b'] })
    take('changes', { now: 7, tasks: [{ ...task, state: 'asking', seq: 11 }] })
    expect(keys()).toEqual(['async:a'])
    expect(feed.known().tasks.get('async:a')?.state).toBe('completed')
  })

  it('merges owners and points, and takes instances and machines as a whole', () => {
    const { feed, take, hello } = setUp()
    hello()
    take('ready', { ...NOTHING, owners: [owner('a'), owner('b')], health: [point(10), point(20)] })
    const step = take('changes', {
      now: 9,
      owners: [owner('b', 2), owner('c')],
      removedOwners: ['a'],
      machines: { asyncTask: { running: 1 } },
      health: [point(20, 4), point(30)],
    })
    expect(step).toEqual({ now: 9, isWhole: false, hasChanged: true })
    expect(feed.known().owners.map(({ owner: name, owed }) => [name, owed])).toEqual([
      ['b', 2],
      ['c', 0],
    ])
    expect(feed.known().health.map(({ at, started }) => [at, started])).toEqual([
      [10, 0],
      [20, 4],
      [30, 0],
    ])
    expect(feed.known().machines).toEqual({ asyncTask: { running: 1 } })
  })

  it('keeps an hour of points', () => {
    const { feed, take, hello } = setUp()
    hello()
    take('ready', NOTHING)
    for (let at = 0; at < 400; at += 1) take('changes', { now: at, health: [point(at * 10_000)] })
    expect(feed.known().health).toHaveLength(360)
    expect(feed.known().health[0]?.at).toBe(400_000)
  })

  it('passes over events that it does not know', () => {
    const { feed } = setUp()
    expect(feed.take({ id: '', event: 'later', data: 'no JSON' })).toEqual({ isWhole: false, hasChanged: false })
  })
})

describe('the list of tasks', () => {
  it('is the same array until something changes', () => {
    const list = createTaskList([pageTask()])
    expect(list.newestFirst()).toBe(list.newestFirst())
    const before = list.newestFirst()
    list.put([pageTask()])
    expect(list.newestFirst()).not.toBe(before)
    expect(list.newestFirst()).toHaveLength(2)
  })

  it('finds a task by its key, or by its id if no other task has it', () => {
    const [one, both] = [pageTask({ id: 'one' }), pageTask({ id: 'both' })]
    const list = createTaskList([one, both, pageTask({ id: 'both', key: 'command:both', kind: 'command' })])
    expect([list.find('async:one'), list.find('one'), list.find('async:both')]).toEqual([one, one, both])
    expect([list.find('both'), list.find('on'), list.get('one')]).toEqual([undefined, undefined, undefined])
  })

  it('replaces schedules, monitors and pauses when they come, and keeps them until then', () => {
    const { feed, take, hello } = setUp()
    const row = { kind: 'schedules', id: 'a', owner: 'main', detail: 'look', at: 1 }
    hello()
    take('ready', { ...NOTHING, host: [row] })
    take('changes', { now: 6 })
    expect(feed.known().host).toEqual([row])
    take('changes', { now: 7, host: [] })
    expect(feed.known().host).toEqual([])
  })
})
