/** A relay in front of several servers, as a load balancer is. A new connection leads to the present server, and open connections stay where they are. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface SwitchingRelay {
  readonly port: number
  /** Leads connections that are opened from now on to another port. */
  switchTo(port: number): void
  close(): Promise<void>
}

export async function startSwitchingRelay(firstPort: number): Promise<SwitchingRelay> {
  let target = firstPort
  const sockets = new Set<Socket>()
  const relay = createServer((client) => {
    const server = connect(target, '127.0.0.1')
    const end = (): void => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', end)
      socket.on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    client.pipe(server).pipe(client)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    port: (relay.address() as AddressInfo).port,
    switchTo: (port) => {
      target = port
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      relay.close()
      await once(relay, 'close')
    },
  }
}
