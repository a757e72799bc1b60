/**
 * Stately's relay and receiver (`@statelyai/inspect`) for a test: on a free loopback port, with connections that can be cut. The package listens on
 * every address and does not return its port. So this module intercepts how the package creates its HTTP server.
 */
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect'
import { createInspectorServer } from '@statelyai/inspect/server'
import { onTestFinished, vi } from 'vitest'

export interface InspectorRelay {
  readonly port: number
  readonly url: string
  /** The address of the page with the viewer, which the relay serves to a browser. */
  readonly httpUrl: string
  /** The messages that Stately's receiver has passed on. */
  received(): Promise<Received>
  /** Stops the relay, and cuts its connections. */
  stop(): Promise<void>
  /** Stops reading from its connections until `resume`. */
  pause(): void
  resume(): void
  /** Resolves when this many connections have been opened in total. */
  connected(count: number): Promise<void>
}

export interface Received {
  readonly messages: StatelyInspectionEvent[]
  /** Resolves when a matching message has been received. */
  until(isIt: (message: StatelyInspectionEvent) => boolean): Promise<StatelyInspectionEvent>
}

/** Starts a relay that is stopped when the test has finished. */
export async function startRelay(port = 0): Promise<InspectorRelay> {
  const sockets = new Set<Socket>()
  const { createServer } = http
  let server: http.Server | undefined
  let listening: Promise<void> | undefined
  const spy = vi.spyOn(http, 'createServer').mockImplementation(((listener: http.RequestListener) => {
    const made = createServer(listener)
    server = made
    const listen = made.listen.bind(made) as (port: number, host: string, ready: () => void) => http.Server
    listening = new Promise((resolve) => {
      made.listen = ((wanted: number, ready: () => void) =>
        listen(wanted, '127.0.0.1', () => {
          ready()
          resolve()
        })) as typeof made.listen
    })
    return made
  }) as typeof http.createServer)
  let relay: { stop(): void }
  try {
    relay = createInspectorServer({ port, autoOpen: false })
  } finally {
    spy.mockRestore()
  }
  if (server === undefined) throw new Error('the relay made no HTTP server')
  const { on, address } = { on: server.on.bind(server), address: server.address.bind(server) }
  let count = 0
  const waiting: { readonly count: number; readonly resolve: () => void }[] = []
  on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  on('upgrade', () => {
    count += 1
    for (const { count: wanted, resolve } of waiting) if (count >= wanted) resolve()
  })
  await listening
  const bound = (address() as AddressInfo).port
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> =>
    (stopped ??= new Promise((resolve) => {
      on('close', () => resolve())
      relay.stop()
      for (const socket of sockets) socket.destroy()
    }))
  onTestFinished(stop)
  const url = `ws://127.0.0.1:${bound}`
  return {
    port: bound,
    url,
    httpUrl: `http://127.0.0.1:${bound}/`,
    stop,
    pause: () =>
      sockets.forEach((socket) => {
        socket.pause()
        // The WebSocket would resume the connection when it has processed its buffer.
        socket.resume = () => socket
      }),
    resume: () =>
      sockets.forEach((socket) => {
        Reflect.deleteProperty(socket, 'resume')
        socket.resume()
      }),
    connected: (wanted) =>
      new Promise((resolve) => {
        if (count >= wanted) resolve()
        else waiting.push({ count: wanted, resolve })
      }),
    received: async () => {
      const messages: StatelyInspectionEvent[] = []
      const looking = new Set<() => void>()
      const before = count
      const receiver = createWebSocketReceiver({ server: url })
      receiver.subscribe((message) => {
        messages.push(message)
        for (const look of looking) look()
      })
      await new Promise<void>((resolve) => {
        if (count > before) resolve()
        else waiting.push({ count: before + 1, resolve })
      })
      return {
        messages,
        until: (isIt) =>
          new Promise((resolve) => {
            const look = (): void => {
              const found = messages.find(isIt)
              if (found === undefined) return
              looking.delete(look)
              resolve(found)
            }
            looking.add(look)
            look()
          }),
      }
    },
  }
}
