/** The relay transport: without a relay, with one that does not answer, and in a browser. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { createActor } from 'xstate'
import { commandTaskMachine } from '../../../../machines/index.js'
import { createInspector } from '../../../../src/observability/inspect/index.js'
import { createRelayTransport } from '../../../../src/observability/inspect/relay.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { waitFor } from '../../../support/wait-for.js'

afterEach(() => {
  vi.unstubAllGlobals()
})

function setUp(url: string) {
  const clock = createManualClock()
  const onOpen = vi.fn()
  const onDown = vi.fn<(error: Error) => void>()
  const transport = createRelayTransport({ url, clock, onOpen, onDown })
  onTestFinished(() => transport.close())
  return { clock, onOpen, onDown, transport }
}

it('N3: an invalid URL is reported once with its cause, and retried', async () => {
  const url = 'ws://127.0.0.1:9/#fragment'
  const { clock, onDown, transport } = setUp(url)
  await waitFor(() => expect(onDown).toHaveBeenCalledOnce())
  expect(onDown.mock.calls[0]?.[0].message).toMatch(
    /^Inspector: Cannot connect to ws:\/\/127\.0\.0\.1:9\/#fragment \(.*fragment.*\)\. Retrying in the background\.$/,
  )
  expect([transport.state, transport.canTake, clock.pending]).toEqual(['down', false, 1])
  clock.runNext()
  await waitFor(() => expect(clock.pending).toBe(1))
  expect(onDown).toHaveBeenCalledOnce()
  await transport.close()
  expect(clock.pending).toBe(0)
})

it('N6: close ends a connection attempt that was not answered', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as { port: number }
  const { transport, onDown, onOpen, clock } = setUp(`ws://127.0.0.1:${port}`)
  await once(silent, 'connection')
  const gone = once(sockets[0]!.resume(), 'close')
  expect([transport.state, transport.isDrained]).toEqual(['opening', true])
  await transport.close()
  await gone
  expect([onOpen.mock.calls, onDown.mock.calls, clock.pending]).toEqual([[], [], 0])
})

it('uses the WebSocket of a browser, which it can only close with a handshake', async () => {
  const opened: string[] = []
  const closed = vi.fn()
  class BrowserSocket {
    readonly bufferedAmount = 0
    readonly send = vi.fn()
    onclose: ((event: object) => void) | undefined
    constructor(url: string) {
      opened.push(url)
    }
    close(): void {
      closed()
      this.onclose?.({ code: 1000, reason: '' })
    }
  }
  vi.stubGlobal('WebSocket', BrowserSocket)
  vi.stubGlobal('process', undefined)
  const { transport } = setUp('wss://relay.example/')
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  vi.unstubAllGlobals()
  expect(opened).toEqual(['wss://relay.example/'])
  await waitFor(() => expect(transport.isDrained).toBe(true))
  await transport.close()
  expect(closed).toHaveBeenCalledOnce()
})

/** A relay that the test plays: the socket of a browser, whose buffer it fills. */
async function setUpScripted() {
  interface ScriptedSocket {
    bufferedAmount: number
    readonly sent: string[]
    onopen?: () => void
    onclose?: (event: object) => void
  }
  const sockets: ScriptedSocket[] = []
  vi.stubGlobal(
    'WebSocket',
    class implements ScriptedSocket {
      bufferedAmount = 0
      readonly sent: string[] = []
      onclose?: (event: object) => void
      constructor() {
        sockets.push(this)
      }
      send(text: string): void {
        this.sent.push(text)
      }
      close(): void {
        this.onclose?.({ code: 1000, reason: '' })
      }
    },
  )
  const process = globalThis.process
  /** Waits for the next attempt to connect. */
  const next = async (start: () => void): Promise<ScriptedSocket> => {
    const before = sockets.length
    vi.stubGlobal('process', undefined)
    start()
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
    vi.stubGlobal('process', process)
    expect(sockets).toHaveLength(before + 1)
    return sockets[before]!
  }
  return { next }
}

it('N2: takes nothing while a relay that does not read has a mebibyte of it, and says when all has left', async () => {
  const { next } = await setUpScripted()
  let subject: ReturnType<typeof setUp> | undefined
  const socket = await next(() => (subject = setUp('wss://relay.example/')))
  const { transport, onOpen } = subject!
  expect([transport.state, transport.canTake]).toEqual(['opening', false])
  socket.onopen?.()
  expect(onOpen).toHaveBeenCalledOnce()
  socket.bufferedAmount = 1024 * 1024 - 1
  expect([transport.state, transport.canTake, transport.isDrained]).toEqual(['open', true, false])
  socket.bufferedAmount = 1024 * 1024
  expect([transport.canTake, transport.isDrained]).toEqual([false, false])
  socket.bufferedAmount = 0
  expect([transport.canTake, transport.isDrained]).toEqual([true, true])
})

it('N3: reports each time that a connection is lost, and not the attempts after that', async () => {
  const { next } = await setUpScripted()
  let subject: ReturnType<typeof setUp> | undefined
  let socket = await next(() => (subject = setUp('wss://relay.example/')))
  const { transport, onDown, onOpen, clock } = subject!
  for (let times = 1; times <= 2; times += 1) {
    socket.onopen?.()
    socket.onclose?.({ code: 1006, reason: '' })
    expect([transport.state, onOpen.mock.calls.length, onDown.mock.calls.length]).toEqual(['down', times, times])
    socket = await next(() => clock.runNext())
    socket.onclose?.({ code: 1006, reason: '' })
    expect([transport.state, onDown.mock.calls.length]).toEqual(['down', times])
    socket = await next(() => clock.runNext())
  }
})

it('N2: an inspector looks again at a relay that was full, keeps 5000 events and as many messages, and leaves no timer', async () => {
  const { next } = await setUpScripted()
  const clock = createManualClock()
  let created: ReturnType<typeof createInspector> | undefined
  const socket = await next(() => (created = createInspector({ url: 'wss://relay.example/', clock })))
  const inspector = created!
  socket.onopen?.()
  socket.bufferedAmount = 1024 * 1024
  const actor = createActor(commandTaskMachine, { input: { totalCommands: 1 } })
  actor.start()
  const events = (count: number): void => {
    for (let n = 0; n < count; n += 1) {
      inspector.next({
        type: '@xstate.event',
        actorRef: actor,
        rootId: 'x',
        sourceRef: undefined,
        event: { type: 'e' },
      } as never)
    }
  }
  events(5000)
  expect(inspector.stats).toMatchObject({ buffered: 5000, dropped: 0 })
  events(1)
  expect(inspector.stats).toMatchObject({ buffered: 5000, dropped: 1 })
  for (let turn = 0; turn < 60; turn += 1) clock.advance(0)
  expect(inspector.stats).toMatchObject({ buffered: 5000, sent: 0 })
  // Full: it is looked at every 50 ms.
  expect(clock.pending).toBe(1)
  socket.bufferedAmount = 0
  clock.advance(49)
  expect(inspector.stats.sent).toBe(0)
  clock.advance(1)
  expect(inspector.stats.sent).toBeGreaterThan(0)
  // It does not wait for longer than a second to be read.
  socket.bufferedAmount = 1024 * 1024
  events(10)
  const { buffered, dropped, sent } = inspector.stats
  expect(buffered).toBe(10)
  const closed = vi.fn()
  void inspector.close().then(closed)
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5)
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
    }
  }
  await pass(995)
  expect(closed).not.toHaveBeenCalled()
  await pass(10)
  expect(closed).toHaveBeenCalledOnce()
  expect(inspector.stats).toMatchObject({ buffered: 0, dropped: dropped + buffered, sent, isConnected: false })
  expect(clock.pending).toBe(0)
  events(1)
  expect([inspector.stats.buffered, clock.pending]).toEqual([0, 0])
})

it('N3: logs errors to the console without onError', async () => {
  const said = vi.spyOn(console, 'error').mockReturnValue()
  onTestFinished(() => said.mockRestore())
  const inspector = createInspector({ url: 'ws://127.0.0.1:9/#fragment' })
  await waitFor(() => expect(said).toHaveBeenCalledOnce())
  expect(said.mock.calls[0]).toEqual([
    '[agent-tasks] inspector, connection:',
    expect.objectContaining({ message: expect.stringContaining('Inspector: Cannot connect') as string }),
  ])
  await inspector.close({ timeoutMs: 0 })
})
