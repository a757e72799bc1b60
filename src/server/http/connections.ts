/**
 * The network connections of a server, from the moment they are accepted. Node's HTTP server does not count all of them: connections in a TLS
 * handshake, upgraded ones, and those whose upgrade was refused are missing there.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { addressOf } from './access.js'

export interface Connections {
  destroyAll(): void
}

/**
 * Counts the connections of one or several servers. Call it before they listen.
 * @param maxPerAddress the maximum number of connections of one address. A further one is closed before anything is read from it
 * @param isInUse if given, the oldest connection of the address that is not in use is closed in place of the new one
 */
export function trackConnections(
  servers: readonly Server[],
  maxPerAddress: number,
  isInUse?: (socket: Socket) => boolean,
): Connections {
  const open = new Map<string, Set<Socket>>()
  const enter = (socket: Socket): void => {
    const address = addressOf({ socket })
    const sockets = open.get(address) ?? new Set()
    if (sockets.size >= maxPerAddress) {
      const unused = isInUse && [...sockets].find((other) => !isInUse(other))
      if (unused === undefined) {
        socket.destroy()
        return
      }
      sockets.delete(unused)
      unused.destroy()
    }
    open.set(address, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) open.delete(address)
    })
  }
  for (const server of servers) server.on('connection', enter)
  return {
    destroyAll: () => {
      for (const sockets of open.values()) for (const socket of sockets) socket.destroy()
    },
  }
}
