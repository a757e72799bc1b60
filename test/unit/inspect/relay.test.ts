/** The relay transport: without a relay, with one that does not answer, and in a browser. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { createInspector } from '../../../src/inspect/index.js'
import { createRelayTransport } from '../../../src/inspect/relay.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

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
  await vi.waitFor(() => expect(onDown).toHaveBeenCalledOnce())
  expect(onDown.mock.calls[0]?.[0].message).toMatch(
    /^Inspector: Cannot connect to ws:\/\/127\.0\.0\.1:9\/#fragment \(.*fragment.*\)\. Retrying in the background\.$/,
  )
  expect([transport.state, transport.canTake, clock.pending]).toEqual(['down', false, 1])
  clock.runNext()
  await vi.waitFor(() => expect(clock.pending).toBe(1))
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
  await vi.waitFor(() => expect(transport.isDrained).toBe(true))
  await transport.close()
  expect(closed).toHaveBeenCalledOnce()
})

it('N3: logs errors to the console without onError', async () => {
  const said = vi.spyOn(console, 'error').mockReturnValue()
  onTestFinished(() => said.mockRestore())
  const inspector = createInspector({ url: 'ws://127.0.0.1:9/#fragment' })
  await vi.waitFor(() => expect(said).toHaveBeenCalledOnce())
  expect(said.mock.calls[0]).toEqual([
    '[agent-tasks] inspector, connection:',
    expect.objectContaining({ message: expect.stringContaining('Inspector: Cannot connect') as string }),
  ])
  await inspector.close({ timeoutMs: 0 })
})
