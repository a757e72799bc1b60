/** The connection of the page, on a clock of the test: when it is live, lost and tried again. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import {
  createConnection,
  SILENCE_MS,
  type Connection,
  type OpenStream,
} from '../../../src/page/app/stream/connection.js'

interface Opened {
  readonly lastEventId: string | undefined
  readonly signal: AbortSignal
  accept(): void
  refuse(status: number, error?: string): void
  fail(): void
  send(text: string): void
  end(): void
}

function setUp() {
  let now = 0
  const timers = new Set<{ readonly at: number; readonly run: () => void }>()
  const opened: Opened[] = []
  const states: Connection[] = []
  const events: string[] = []
  const connection = createConnection({
    platform: {
      now: () => now,
      after: (ms, run) => {
        const timer = { at: now + ms, run }
        timers.add(timer)
        return () => timers.delete(timer)
      },
      open: (lastEventId, signal) =>
        new Promise<OpenStream>((resolve, reject) => {
          const pieces = new TransformStream<string, string>()
          const writer = pieces.writable.getWriter()
          opened.push({
            lastEventId,
            signal,
            accept: () => resolve({ status: 200, pieces: pieces.readable as unknown as AsyncIterable<string> }),
            refuse: (status, error) =>
              resolve({
                status,
                pieces: pieces.readable as unknown as AsyncIterable<string>,
                ...(error !== undefined && { error }),
              }),
            fail: () => reject(new TypeError('Failed to fetch')),
            send: (text) => void writer.write(text),
            end: () => void writer.close(),
          })
        }),
    },
    onEvent: ({ data }) => events.push(data),
    onState: (state) => states.push(state),
    onHeard: () => undefined,
  })
  return {
    connection,
    states,
    events,
    opened,
    timers,
    last: () => opened.at(-1)!,
    advance: async (ms: number): Promise<void> => {
      const end = now + ms
      for (;;) {
        await setImmediate()
        const next = [...timers].sort((a, b) => a.at - b.at)[0]
        if (!next || next.at > end) break
        now = next.at
        timers.delete(next)
        next.run()
      }
      now = end
      await setImmediate()
    },
  }
}

describe('the connection of the page', () => {
  it('is lost within two seconds of silence, and not before', async () => {
    const { advance, last, opened, states } = setUp()
    last().accept()
    await advance(1000)
    last().send(': beat\n\n')
    await advance(SILENCE_MS - 300)
    expect(states).toEqual([{ state: 'connecting' }])
    await advance(600)
    expect(states.at(-1)).toEqual({ state: 'lost', why: 'The server does not answer.' })
    expect(opened[0]?.signal.aborted).toBe(true)
    expect(SILENCE_MS).toBeLessThan(2000)
  })

  it('lets a page that slept read what has come, before it calls the server lost', async () => {
    const { advance, last, states, timers } = setUp()
    last().accept()
    await advance(200)
    // The timers stand still for a minute; then one of them is due.
    const [timer] = timers
    expect(timers.size).toBe(1)
    await advance(0)
    timers.clear()
    timers.add({ at: 60_000, run: timer!.run })
    await advance(59_900)
    expect(states).toEqual([{ state: 'connecting' }])
  })

  it('is lost at once when the server goes, or is not there', async () => {
    const { advance, last, states } = setUp()
    last().fail()
    await advance(0)
    expect(states.at(-1)).toEqual({ state: 'lost', why: 'The server does not answer.' })
    await advance(250)
    last().accept()
    last().end()
    await advance(0)
    expect(states.at(-1)).toEqual({ state: 'lost', why: 'The server has ended the connection.' })
  })

  it('tries again with growing pauses, and from the start after it has heard of the server', async () => {
    const { advance, last, opened } = setUp()
    const pauses = [250, 500, 1000, 2000, 4000, 4000]
    for (const [index, pause] of pauses.entries()) {
      last().fail()
      await advance(pause - 1)
      expect(opened).toHaveLength(index + 1)
      await advance(1)
      expect(opened).toHaveLength(index + 2)
    }
    last().accept()
    last().send(': beat\n\n')
    await advance(0)
    last().end()
    await advance(250)
    expect(opened).toHaveLength(pauses.length + 2)
  })

  it('resumes after the last event that it has got', async () => {
    const { advance, last, events } = setUp()
    expect(last().lastEventId).toBeUndefined()
    last().accept()
    last().send('id: run-7\nevent: ready\ndata: {}\n\nid: run-8\ndata: cut')
    await advance(0)
    last().end()
    await advance(250)
    expect(last().lastEventId).toBe('run-7')
    expect(events).toEqual(['{}'])
  })

  it('stops at a refused token, and says why', async () => {
    const { advance, last, states, opened, timers } = setUp()
    last().refuse(401, 'A token is needed.')
    await advance(60_000)
    expect(states.at(-1)).toEqual({ state: 'refused', why: 'A token is needed.' })
    expect(opened).toHaveLength(1)
    expect(timers.size).toBe(0)
  })

  it('tries again after another refusal, with its words', async () => {
    const { advance, last, states, opened } = setUp()
    last().refuse(429, 'There are too many open pages.')
    await advance(250)
    expect(states.at(-1)).toEqual({ state: 'lost', why: 'There are too many open pages.' })
    expect(opened).toHaveLength(2)
  })

  it('tries at once when it is asked to, and only while it waits', async () => {
    const { advance, connection, last, opened } = setUp()
    connection.retryNow()
    expect(opened).toHaveLength(1)
    last().fail()
    await advance(0)
    connection.retryNow()
    expect(opened).toHaveLength(2)
    await advance(200)
    connection.retryNow()
    expect(opened).toHaveLength(2)
  })

  it('leaves nothing when it is closed', async () => {
    const { advance, connection, last, timers, opened, events } = setUp()
    last().accept()
    await advance(0)
    connection.close()
    expect(last().signal.aborted).toBe(true)
    last().send('data: late\n\n')
    last().end()
    await advance(10_000)
    expect(timers.size).toBe(0)
    expect(opened).toHaveLength(1)
    expect(events).toEqual([])
  })
})
