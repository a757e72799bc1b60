// The feed of a cluster, as one node reads it.
import type { Redis } from 'ioredis'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createFeed, type FeedEntry } from '../../../../src/bullmq/cluster/feed.js'

type Entries = [id: string, fields: string[]][]

/** A feed whose reads a test answers. */
function open(newest: Entries = []) {
  const reads: { from: unknown; answer: (entries: Entries | null | Error) => void }[] = []
  const lines: string[] = []
  const entries: FeedEntry[] = []
  let gaps = 0
  let isConnected = true
  let onEntry = (_entry: FeedEntry): Promise<void> | void => undefined
  const redis = {
    xrevrange: () => Promise.resolve(newest),
    xread: (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        const answer = (found: Entries | null | Error): void => {
          if (found instanceof Error) reject(found)
          else resolve(found === null ? null : [['feed', found]])
        }
        reads.push({ from: args.at(-1), answer })
      }),
    disconnect: () => (isConnected = false),
  }
  const feed = createFeed({
    redis: redis as unknown as Redis,
    stream: 'feed',
    log: (line: string) => void lines.push(line),
    onEntry: (entry) => {
      entries.push(entry)
      return onEntry(entry)
    },
    onGap: () => (gaps += 1),
  })
  /** The next read; it is made some microtasks, or a pause, later. */
  const read = async () => {
    while (reads.length === 0) await new Promise((resolve) => setImmediate(resolve))
    return reads.shift() ?? expect.unreachable()
  }
  return {
    feed,
    entries,
    lines,
    read,
    gaps: () => gaps,
    pending: () => reads.length,
    isConnected: () => isConnected,
    whenEntry: (run: typeof onEntry) => (onEntry = run),
  }
}

const entry = (id: string, n: number, ...fields: string[]): Entries[number] => [
  id,
  ['n', String(n), 't', 'work', ...fields],
]

it('N3: begins after what is newest, and reads on from its last entry', async () => {
  const { feed, entries, read, gaps } = open([entry('7-0', 7)])
  await feed.start()
  const first = await read()
  expect(first.from).toBe('7-0')
  first.answer([entry('8-0', 8, 'inst', 'w'), entry('9-0', 9)])
  const second = await read()
  expect(second.from).toBe('9-0')
  second.answer(null)
  expect((await read()).from).toBe('9-0')
  expect(entries).toEqual([
    { type: 'work', fields: { n: '8', t: 'work', inst: 'w' } },
    { type: 'work', fields: { n: '9', t: 'work' } },
  ])
  expect(gaps()).toBe(0)
  feed.close()
})

it('N3: notices what was removed before it was read, once for each gap', async () => {
  const { feed, read, gaps } = open()
  await feed.start()
  const first = await read()
  expect(first.from).toBe('0-0')
  first.answer([entry('1-0', 5), entry('2-0', 6), entry('3-0', 9), entry('4-0', 10)])
  await read()
  expect(gaps()).toBe(1)
  feed.close()
})

it('N3: notices numbers that go back or come again: Redis has lost what it had', async () => {
  const { feed, read, gaps } = open()
  await feed.start()
  const first = await read()
  first.answer([entry('1-0', 5), entry('2-0', 6)])
  const second = await read()
  second.answer([entry('3-0', 3), entry('4-0', 4)])
  const third = await read()
  expect(gaps()).toBe(1)
  third.answer([entry('5-0', 4), entry('6-0', 5)])
  await read()
  expect(gaps()).toBe(2)
  feed.close()
})

it('N3: compares its first entry with what was newest when it began', async () => {
  for (const [number, expected] of [
    [8, 0],
    [9, 1],
    [1, 1],
  ] as const) {
    const { feed, read, gaps } = open([entry('7-0', 7)])
    await feed.start()
    const first = await read()
    first.answer([entry('8-0', number)])
    await read()
    expect([number, gaps()]).toEqual([number, expected])
    feed.close()
  }
})

it('N3: gives one entry after the other, and none when it is closed', async () => {
  const { feed, entries, read, whenEntry, isConnected } = open()
  let go = (): void => undefined
  whenEntry(() => new Promise((resolve) => (go = resolve)))
  await feed.start()
  const first = await read()
  first.answer([entry('1-0', 1), entry('2-0', 2), entry('3-0', 3)])
  while (entries.length === 0) await Promise.resolve()
  await new Promise((resolve) => setImmediate(resolve))
  expect(entries).toHaveLength(1)
  go()
  while (entries.length === 1) await Promise.resolve()
  feed.close()
  go()
  await new Promise((resolve) => setImmediate(resolve))
  expect(entries).toHaveLength(2)
  expect(isConnected()).toBe(false)
})

it('N3: reads again from where it was when a read has failed, and says why; not when it is closed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { feed, lines, read } = open([entry('7-0', 7)])
  await feed.start()
  const first = await read()
  first.answer(new Error('It was reset.'))
  while (lines.length === 0) await Promise.resolve()
  await vi.advanceTimersByTimeAsync(100)
  const second = await read()
  expect(second.from).toBe('7-0')
  expect(lines).toEqual(['The feed of the cluster could not be read, and is read again: It was reset.'])
  feed.close()
  second.answer(new Error('It was closed.'))
  await new Promise((resolve) => setImmediate(resolve))
  expect(lines).toHaveLength(1)
})

it('N3: waits longer after each failed read, and briefly again after one that has succeeded', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { feed, read, pending } = open()
  await feed.start()
  const failAndWait = async (ms: number) => {
    const { answer } = await read()
    answer(new Error('It was reset.'))
    await vi.advanceTimersByTimeAsync(ms - 1)
    expect(pending()).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(pending()).toBe(1)
  }
  await failAndWait(100)
  await failAndWait(200)
  const { answer } = await read()
  answer(null)
  await failAndWait(100)
  feed.close()
})
