/** Unix sockets: how long their paths may be, and how a server listens on one. */
import type { Server } from 'node:net'

/** The maximum length of the path of a Unix socket on Linux and macOS, in bytes (`sun_path` of unix(7) and unix(4), without its NUL). */
export const MAX_PATH_BYTES = 103

/** Listens on a path. Rejects if that fails. After the start, errors concern single connections, which handle them. */
export function listenOn(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      server.on('error', () => undefined)
      resolve()
    })
  })
}
