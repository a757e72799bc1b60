/** One address in front of several servers. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server behind it. */
interface Fronted {
  readonly httpUrl: string
  /** Whether it is left out. */
  readonly isPaused?: boolean
}

/** One address: passes each connection on to the next node that takes it. */
export async function startFront(nodes: () => readonly Fronted[]): Promise<{ url: string; cut: () => void }> {
  let turn = 0
  const open = new Set<Socket>()
  const server = createServer((client) => {
    keep(client)
    void (async () => {
      for (let tried = 0; tried < nodes().length; tried += 1) {
        const node = nodes()[turn++ % nodes().length]
        const upstream =
          node !== undefined && node.isPaused !== true && (await reach(Number(new URL(node.httpUrl).port)))
        if (upstream === undefined || upstream === false) continue
        keep(upstream)
        client.pipe(upstream).pipe(client)
        upstream.once('close', () => client.destroy())
        client.once('close', () => upstream.destroy())
        return
      }
      client.destroy()
    })()
  })
  const keep = (socket: Socket): void => {
    open.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => open.delete(socket))
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => open.forEach((socket) => void socket.destroy())
  onTestFinished(async () => {
    cut()
    server.close()
    await once(server, 'close')
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut }
}

function reach(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  })
}
