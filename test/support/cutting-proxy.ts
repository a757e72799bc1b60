/** A relay in front of a server. A test can cut a connection before a message reaches the server, or before the answer comes back. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface CuttingProxy {
  readonly port: number
  /** How many connections were cut. */
  readonly cuts: number
  /** Cuts a connection at the next message of a client: before the message arrives, or before its answer does. */
  cutNext(when: 'before the request' | 'after the request'): void
  close(): Promise<void>
}

export async function startCuttingProxy(serverPort: number): Promise<CuttingProxy> {
  let next: 'before the request' | 'after the request' | undefined
  let cuts = 0
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1')
    let isDeaf = false
    const end = (): void => {
      client.destroy()
      server.destroy()
    }
    const cut = (): void => {
      next = undefined
      cuts += 1
      end()
    }
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', end)
      socket.on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    client.on('data', (data) => {
      isDeaf = next === 'after the request'
      if (next === 'before the request') cut()
      else server.write(data)
    })
    server.on('data', (data) => {
      if (isDeaf) cut()
      else client.write(data)
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    port: (proxy.address() as AddressInfo).port,
    get cuts() {
      return cuts
    },
    cutNext: (when) => {
      next = when
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
