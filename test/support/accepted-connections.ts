/** Opens idle connections to a server until it refuses one. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** How many connections are opened at a time: fewer than wait to be accepted. */
const AT_A_TIME = 100

/**
 * Opens one connection more than a server should accept.
 * @returns how many the server keeps, when it has closed at least one of them
 */
export async function acceptedConnections(url: string, expected: number): Promise<number> {
  const { hostname, port } = new URL(url)
  const open = new Set<Socket>()
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
  })
  let onClosed: () => void
  const closed = new Promise<void>((resolve) => (onClosed = resolve))
  const openOne = async (): Promise<void> => {
    const socket = connect({ host: hostname, port: Number(port) })
    socket
      .on('error', () => undefined)
      .on('close', () => {
        open.delete(socket)
        onClosed()
      })
    open.add(socket)
    await once(socket, 'connect')
    socket.resume()
  }
  for (let left = expected + 1; left > 0; left -= AT_A_TIME) {
    await Promise.all(Array.from({ length: Math.min(left, AT_A_TIME) }, openOne))
  }
  await closed
  // A server that accepted fewer has closed the others by the time that it answers those that it keeps.
  const [first] = open
  first?.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  if (first !== undefined) await once(first, 'data')
  return open.size
}
