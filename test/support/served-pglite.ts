/** PostgreSQL on a port of the loopback, for what connects with `pg`: PGlite behind the messages of the protocol. All connections are one session. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { PGlite } from '@electric-sql/pglite'

export interface LocalServer {
  readonly port: number
  readonly url: string
  /** Ends all connections with a reset. */
  reset(): void
  close(): Promise<void>
}

/** AuthenticationOk, and ReadyForQuery outside of a transaction. */
const WELCOME = Buffer.from([...[0x52, 0, 0, 0, 8, 0, 0, 0, 0], ...[0x5a, 0, 0, 0, 5, 0x49]])

/** The kinds of messages that wait for an answer: Query and Sync. */
const ANSWERED = ['Q', 'S']

/**
 * Listens on a free port.
 * @param serve called for each connection
 */
export async function listenLocally(serve: (socket: Socket) => void): Promise<LocalServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    serve(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const reset = (): void => sockets.forEach((socket) => socket.resetAndDestroy())
  return {
    port,
    url: `postgres://agent:secret@127.0.0.1:${port}/tasks`,
    reset,
    close: async () => {
      reset()
      await once(server.close(), 'close')
    },
  }
}

/** Serves a database. */
export const servePostgres = (database: PGlite): Promise<LocalServer> =>
  listenLocally((socket) => {
    let isWelcome = false
    let bytes = Buffer.alloc(0)
    let batch: Buffer[] = []
    const take = (length: number): Buffer => {
      const taken = bytes.subarray(0, length)
      bytes = bytes.subarray(length)
      return taken
    }
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      // Every message but the first one has a byte of its kind before its length.
      for (;;) {
        const size = isWelcome ? 1 : 0
        if (bytes.length < size + 4 || bytes.length < size + bytes.readUInt32BE(size)) return
        const message = take(size + bytes.readUInt32BE(size))
        if (!isWelcome) {
          isWelcome = true
          socket.write(WELCOME)
          continue
        }
        const kind = String.fromCharCode(message[0] ?? 0)
        if (kind === 'X') return void socket.end()
        batch.push(message)
        if (!ANSWERED.includes(kind)) continue
        const question = Buffer.concat(batch)
        batch = []
        void database.execProtocolRaw(question).then((answer) => socket.write(answer))
      }
    })
  })
