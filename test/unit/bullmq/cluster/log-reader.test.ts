// The events of tasks, as a host reads them with one connection.
import type { Redis } from 'ioredis'
import { expect, it, onTestFinished, vi } from 'vitest'
import { clusterKeys } from '../../../../src/bullmq/cluster/cluster-keys.js'
import type { KeptEvent } from '../../../../src/bullmq/cluster/cluster-redis.js'
import { LogReader } from '../../../../src/bullmq/cluster/log-reader.js'

type Found = [stream: string, entries: [id: string, fields: string[]][]][]

/** A reader whose reads a test answers. */
function open({ kept = [] as readonly KeptEvent[] } = {}) {
  const reads: { streams: string[]; places: string[]; answer: (found: Found | null | Error) => void }[] = []
  const rung: string[] = []
  const lines: string[] = []
  const asked: [string, number][] = []
  let isConnected = true
  const reading = {
    xread: (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        const named = args.slice(args.indexOf('STREAMS') + 1) as string[]
        const answer = (found: Found | null | Error): void => (found instanceof Error ? reject(found) : resolve(found))
        reads.push({
          streams: named.slice(0, named.length / 2),
          places: named.slice(named.length / 2),
          answer,
        })
      }),
    disconnect: () => (isConnected = false),
  }
  const bell = {
    xadd: (stream: string) => {
      rung.push(stream)
      return bell
    },
    pexpire: () => bell,
    exec: () => Promise.resolve([]),
  }
  const reader = new LogReader({
    connection: { multi: () => bell } as unknown as Redis,
    reading: reading as unknown as Redis,
    read: (taskId, after) => {
      asked.push([taskId, after])
      return Promise.resolve(kept)
    },
    keys: clusterKeys('c'),
    log: (line: string) => void lines.push(line),
  })
  const next = async () => {
    for (let turn = 0; reads.length === 0 && turn < 100; turn += 1) await Promise.resolve()
    return reads.shift() ?? expect.unreachable('nothing is read')
  }
  return { reader, reads, rung, lines, asked, next, isConnected: () => isConnected }
}

const log = (id: string): string => `{c}:cluster:log:${id}`
const event = (seq: number): [string, string[]] => [`${seq}-0`, ['m', `{"seq":${seq}}`]]

it('N3: gives each event of a task once, in order, to each that follows it', async () => {
  const { reader, next, reads } = open()
  const seen: string[] = []
  const stopFirst = reader.follow('a', ({ seq }) => seen.push(`first ${seq}`))
  const read = await next()
  expect([read.streams[1], read.places]).toEqual([log('a'), ['0-0', '0-0']])
  read.answer([[log('a'), [event(1), event(2)]]])
  const second = await next()
  expect(second.places[1]).toBe('2-0')
  // Who comes later has them from the first: it is read again, and the other one does not get it twice.
  const stopLate = reader.follow('a', ({ seq }) => seen.push(`late ${seq}`))
  second.answer(null)
  const third = await next()
  expect(third.places[1]).toBe('0-0')
  third.answer([[log('a'), [event(1), event(2), event(3)]]])
  const fourth = await next()
  expect(seen).toEqual(['first 1', 'first 2', 'first 3', 'late 1', 'late 2', 'late 3'])
  stopFirst()
  stopLate()
  fourth.answer([[log('a'), [event(4)]]])
  await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toHaveLength(6)
  // Nothing is followed: nothing is read.
  expect(reads).toEqual([])
})

it('N3: is woken when another task is followed while it waits', async () => {
  const { reader, next, rung } = open()
  const stops = [reader.follow('a', () => undefined)]
  const first = await next()
  stops.push(reader.follow('b', () => undefined))
  expect(rung).toEqual([first.streams[0]])
  first.answer([[first.streams[0] ?? '', [['5-0', ['r', '']]]]])
  const second = await next()
  expect([second.streams.slice(1), second.places]).toEqual([
    [log('a'), log('b')],
    ['5-0', '0-0', '0-0'],
  ])
  for (const stop of stops) stop()
  second.answer(null)
})

it('N3: goes on for those that still follow, whoever stops, and however often', async () => {
  const { reader, next } = open()
  const seen: string[] = []
  const stopFirst = reader.follow('a', ({ seq }) => seen.push(`first ${seq}`))
  const stopSecond = reader.follow('a', ({ seq }) => seen.push(`second ${seq}`))
  const first = await next()
  stopFirst()
  first.answer([[log('a'), [event(1)]]])
  const second = await next()
  expect(seen).toEqual(['second 1'])
  stopSecond()
  // It is followed anew: the ends of earlier ones are not its own.
  const stopThird = reader.follow('a', ({ seq }) => seen.push(`third ${seq}`))
  stopSecond()
  second.answer([
    [
      second.streams[0] ?? '',
      [
        ['5-0', []],
        ['6-0', []],
      ],
    ],
  ])
  const third = await next()
  expect([third.streams[1], third.places]).toEqual([log('a'), ['6-0', '0-0']])
  third.answer([[log('a'), [event(1)]]])
  const fourth = await next()
  expect(seen).toEqual(['second 1', 'third 1'])
  stopThird()
  fourth.answer(null)
  await new Promise((resolve) => setImmediate(resolve))
  // What has stopped to read starts again.
  const stopFourth = reader.follow('b', () => undefined)
  const fifth = await next()
  expect(fifth.streams[1]).toBe(log('b'))
  stopFourth()
  fifth.answer(null)
})

it('N3: reads what is there by now, from where it is', async () => {
  const { reader, next, asked } = open({ kept: [1, 2, 3].map((seq) => ({ seq, json: '{}' })) })
  const seen: number[] = []
  const stop = reader.follow('a', ({ seq }) => seen.push(seq))
  const first = await next()
  first.answer([[log('a'), [event(1), event(2)]]])
  const second = await next()
  await reader.catchUp('a')
  expect([asked, seen]).toEqual([[['a', 2]], [1, 2, 3]])
  stop()
  second.answer(null)
})

it('N3: reads again when a read has failed, and says why; when it is closed it reads no more', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { reader, next, reads, lines, isConnected } = open()
  reader.follow('a', () => undefined)
  const first = await next()
  first.answer(new Error('It was reset.'))
  await vi.advanceTimersByTimeAsync(99)
  expect(reads).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  const second = await next()
  expect(lines).toEqual(['The events of tasks could not be read, and are read again: It was reset.'])
  reader.close()
  second.answer(new Error('It was closed.'))
  await vi.advanceTimersByTimeAsync(1000)
  expect([reads, lines.length, isConnected()]).toEqual([[], 1, false])
})
