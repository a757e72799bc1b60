/** K1 to K3: a connection that reconnects, whatever its owner does in `onDown`. The test owns the sockets and the time. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLink, type LinkEnd, type LinkOptions } from '../../../src/client/link.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { scriptSockets, settle } from '../../support/scripted-sockets.js'

function setUp(options: Partial<LinkOptions> = {}) {
  const clock = createManualClock(1000)
  const sockets = scriptSockets()
  const ends: LinkEnd[] = []
  const link = createLink({
    url: () => 'ws://127.0.0.1:1/ws',
    clock,
    reconnection: () => 100,
    loadSocket: () => Promise.resolve(sockets.WebSocket),
    onOpen: () => undefined,
    onMessage: () => undefined,
    onDown: (end) => ends.push(end) > 0,
    ...options,
  })
  onTestFinished(async () => {
    await link.close()
    expect(clock.pending).toBe(0)
  })
  return { clock, sockets, ends, link }
}

describe('a link', () => {
  it('K2: opens no socket when it is closed during an attempt', async () => {
    let go: () => void = () => undefined
    const { link, sockets, ends } = setUp({ beforeConnect: () => new Promise((resolve) => (go = resolve)) })
    link.wake()
    const closed = link.close()
    go()
    await closed
    await settle()
    expect([sockets.sockets, ends]).toEqual([[], []])
  })

  it('K2: does not reconnect when it is closed in onDown', async () => {
    const { link, clock, sockets } = setUp({
      onDown: () => {
        void link.close()
        return true
      },
    })
    link.wake()
    await settle()
    sockets.last.lose()
    expect(clock.pending).toBe(0)
    clock.advance(60_000)
    await settle()
    expect(sockets.sockets).toHaveLength(1)
  })

  it('K1: opens one socket at once when it is woken in onDown', async () => {
    const { link, clock, sockets } = setUp({
      onDown: () => {
        link.wake()
        return true
      },
    })
    link.wake()
    await settle()
    sockets.last.lose()
    await settle()
    expect(sockets.sockets).toHaveLength(2)
    clock.advance(1000)
    await settle()
    expect(sockets.sockets).toHaveLength(2)
  })

  it('K3: reports a dropped connection once, and nothing when there is none', async () => {
    const { link, sockets, ends } = setUp()
    link.drop('too early')
    link.wake()
    await settle()
    sockets.last.open()
    link.drop('enough')
    link.drop('more than enough')
    expect(ends.map(({ error, wasReady }) => [error.message, wasReady])).toEqual([
      ['Cannot connect to ws://127.0.0.1:1/ws (enough).', false],
    ])
    expect(sockets.last.closedWith).toBeDefined()
  })

  it('can be ready only when it is open, and sends nothing before', async () => {
    const { link, sockets } = setUp()
    link.ready()
    expect([link.isReady, link.send({ type: 'early' })]).toEqual([false, false])
    link.wake()
    await settle()
    link.ready()
    expect([link.isReady, link.send({ type: 'early' })]).toEqual([false, false])
    sockets.last.open()
    expect(link.send({ type: 'hello' })).toBe(true)
    link.ready()
    expect(link.isReady).toBe(true)
    sockets.last.lose()
    expect([link.isReady, link.send({ type: 'late' })]).toEqual([false, false])
    expect(sockets.last.sent).toEqual([{ type: 'hello' }])
  })

  it('K1: hears nothing of an earlier socket', async () => {
    const { link, clock, sockets } = setUp()
    link.wake()
    await settle()
    const first = sockets.last
    first.open()
    link.ready()
    link.drop('for a test')
    clock.advance(100)
    await settle()
    sockets.last.open()
    const { heardAt } = link
    clock.advance(50)
    first.receive({ type: 'late' })
    expect(link.heardAt).toBe(heardAt)
    sockets.last.receive({ type: 'now' })
    expect(link.heardAt).toBe(heardAt + 50)
  })

  it('counts its failures, and how long they have lasted, from the last success or the last end', async () => {
    const asked: [number, number][] = []
    const { link, clock, sockets } = setUp({
      reconnection: (...given) => {
        asked.push(given)
        return asked.length === 3 ? undefined : 100
      },
    })
    const fail = async (): Promise<void> => {
      await settle()
      sockets.last.lose()
    }
    link.wake()
    await fail()
    clock.advance(100)
    await fail()
    clock.advance(100)
    await fail()
    // That was the end. What is begun later begins anew.
    clock.advance(5000)
    link.wake()
    await fail()
    clock.advance(100)
    await settle()
    sockets.last.open()
    link.ready()
    clock.advance(5000)
    sockets.last.lose()
    expect(asked).toEqual([
      [1, 0],
      [2, 100],
      [3, 200],
      [1, 0],
      [1, 0],
    ])
  })
})
