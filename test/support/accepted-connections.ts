/** Opens idle connections to a server until it refuses one. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** How many connections are opened at the same time. The system lets more than this wait until the server accepts them. */
const AT_A_TIME = 100

/**
 * Opens one connection more than a server should accept, and waits until the server has closed at least one of them.
 * @returns how many connections the server keeps
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
  // By the time when the server answers a connection that it keeps, it has closed all that it does not keep.
  const [first] = open
  first?.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  if (first !== undefined) await once(first, 'data')
  return open.size
}
