/** An address in front of servers. A test can cut its connections. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { onTestFinished } from 'vitest'

export interface Front {
  readonly port: number
  /** Cuts its connections: all of them, or every n-th. */
  readonly cut: (each?: number) => void
}

/**
 * @param reach connects to a server behind the address; undefined when there is none. Called for each connection
 * @param delayMs how long the data to the server is delayed, in ms
 */
export async function startFront(reach: () => Promise<Socket | undefined>, delayMs = 0): Promise<Front> {
  const open = new Set<Socket>()
  const keep = (socket: Socket): void => {
    open.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => open.delete(socket))
  }
  const server = createServer((client) => {
    keep(client)
    void reach().then((upstream) => {
      if (upstream === undefined || client.destroyed) {
        upstream?.destroy()
        client.destroy()
        return
      }
      keep(upstream)
      if (delayMs > 0) client.pipe(delayed(delayMs)).pipe(upstream).pipe(client)
      else client.pipe(upstream).pipe(client)
      upstream.once('close', () => client.destroy())
      client.once('close', () => upstream.destroy())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (each = 1): void => {
    for (const socket of [...open].filter((_, at) => at % each === 0)) socket.destroy()
  }
  onTestFinished(async () => {
    cut()
    server.close()
    await once(server, 'close')
  })
  return { port: (server.address() as AddressInfo).port, cut }
}

const delayed = (ms: number): Transform =>
  new Transform({
    transform: (chunk, _encoding, pass) => void setTimeout(pass, ms, null, chunk),
  })

/** Connects to a port of this machine. Returns undefined when no program listens there. */
export function connectTo(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  })
}

/** A server that can be behind an address. */
export interface Fronted {
  readonly httpUrl: string
  readonly isEnded?: boolean
  readonly isPaused?: boolean
}

/** Connects to the servers in turn. Leaves out those that do not run. */
export function inTurn(nodes: () => readonly Fronted[]): () => Promise<Socket | undefined> {
  let turn = 0
  return async () => {
    const alive = nodes().filter(({ isEnded, isPaused }) => isEnded !== true && isPaused !== true)
    for (let tried = 0; tried < alive.length; tried += 1) {
      const node = alive[turn++ % alive.length]
      const socket = node && (await connectTo(Number(new URL(node.httpUrl).port)))
      if (socket !== undefined) return socket
    }
    return undefined
  }
}
