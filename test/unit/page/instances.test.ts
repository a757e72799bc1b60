// The instances of the page and their tools, on a list that the test changes.
import { expect, it, vi } from 'vitest'
import { Instances } from '../../../src/page/instances.js'
import { settle } from '../../support/scripted-sockets.js'

const MIB = 1024 * 1024

function createSubject() {
  const list: { id: string; serial: number; isConnected: boolean; instance: { listTools: () => Promise<unknown> } }[] =
    []
  const lanes: { instanceId: string; size: number; runningId?: string }[] = []
  const connected = new Set<(id: string) => void>()
  const disconnected = new Set<() => void>()
  const paused = new Set<() => void>()
  const listen =
    <T>(all: Set<T>) =>
    (each: T) => {
      all.add(each)
      return () => void all.delete(each)
    }
  const onChange = vi.fn()
  let serial = 0
  const add = (id: string, listTools: () => Promise<unknown>, isConnected = true): void => {
    list.push({ id, serial: (serial += 1), isConnected, instance: { listTools } })
    for (const each of connected) each(id)
  }
  const remove = (id: string): void => {
    list.splice(
      list.findIndex((each) => each.id === id),
      1,
    )
    for (const each of disconnected) each()
  }
  const instances = new Instances(
    {
      instances: {
        list: () => [...list],
        get: (id: string) => list.find((each) => each.id === id),
        onConnect: listen(connected),
        onDisconnect: listen(disconnected),
      },
      lanes,
      pausedInstances: new Map(),
      on: (_event: string, each: () => void) => paused.add(each),
      off: (_event: string, each: () => void) => paused.delete(each),
    } as never,
    onChange,
  )
  const toolsOf = () => instances.list().map(({ id, tools }) => [id, tools.length] as const)
  return {
    instances,
    lanes,
    onChange,
    add,
    remove,
    toolsOf,
    listeners: () => [connected.size, disconnected.size, paused.size],
  }
}
const tools =
  (...names: readonly string[]) =>
  () =>
    Promise.resolve(names.map((name) => ({ name })))

it('an answer that comes when its instance is gone, or another has its id, is not that of the other', async () => {
  const { add, remove, toolsOf, onChange } = createSubject()
  let answer: (listed: unknown) => void = () => undefined
  add('a', () => new Promise((resolve) => (answer = resolve)))
  remove('a')
  add('a', tools('new'))
  await settle()
  onChange.mockClear()
  answer([{ name: 'old 1' }, { name: 'old 2' }])
  await settle()
  expect(onChange).not.toHaveBeenCalled()
  expect(toolsOf()).toEqual([['a', 1]])
})

it('tools are asked for again, stay as they are known without an answer, and are forgotten with their instance', async () => {
  const { instances, add, remove, toolsOf, onChange } = createSubject()
  const answers = [[{ name: 'one' }], [{ name: 'one' }, { name: 'two' }]]
  const listTools = vi.fn(() => {
    const next = answers.shift()
    return next === undefined ? Promise.reject(new Error('no')) : Promise.resolve(next)
  })
  add('a', listTools)
  add('waits', listTools, false)
  await settle()
  expect(toolsOf()).toEqual([
    ['a', 1],
    ['waits', 0],
  ])
  for (const count of [2, 2]) {
    instances.refresh()
    await settle()
    expect(toolsOf()[0]).toEqual(['a', count])
  }
  expect(listTools).toHaveBeenCalledTimes(3)
  onChange.mockClear()
  remove('a')
  expect(onChange).toHaveBeenCalledOnce()
  expect(toolsOf()).toEqual([['waits', 0]])
})

it('what is queued is what does not run', () => {
  const { instances, lanes, add } = createSubject()
  for (const id of ['runs', 'held', 'idle']) add(id, tools())
  lanes.push({ instanceId: 'runs', size: 3, runningId: 't1' }, { instanceId: 'held', size: 2 })
  expect(instances.list().map(({ queued, running }) => [queued, running])).toEqual([
    [2, 'command:t1'],
    [2, undefined],
    [0, undefined],
  ])
})

it('the tools of an instance have 1 MiB, and those of all 4 MiB: what does not fit is left out, and what follows may', async () => {
  const { add, toolsOf } = createSubject()
  const big = { name: 'big', inputSchema: { type: 'object', title: 'x'.repeat(600 * 1024) } }
  const twice = () => Promise.resolve([big, { name: 'small' }, big, { name: 'after' }])
  for (let at = 0; at < 8; at += 1) add(`i${at}`, twice)
  add('last', tools('fits'))
  await settle()
  const room = Math.floor((4 * MIB) / (600 * 1024))
  expect(toolsOf()).toEqual([...Array.from({ length: 8 }, (_, at) => [`i${at}`, at < room ? 2 : 0]), ['last', 1]])
})

it('what is no list of tools has none, and a tool without a name is left out', async () => {
  const { instances, add } = createSubject()
  add('odd', () => Promise.resolve('no list'))
  add('some', () =>
    Promise.resolve([{ name: 1 }, null, { name: 'n'.repeat(300), description: 'd'.repeat(3000), inputSchema: 5 }]),
  )
  await settle()
  expect(instances.list().map((each) => each.tools)).toEqual([
    [],
    [{ name: 'n'.repeat(200), description: 'd'.repeat(2000), inputSchema: { type: 'object' } }],
  ])
})

it('nothing listens when it has stopped', () => {
  const { instances, listeners } = createSubject()
  expect(listeners()).toEqual([1, 1, 1])
  instances.stop()
  expect(listeners()).toEqual([0, 0, 0])
})
