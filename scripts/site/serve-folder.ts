/** A server for the files of a folder, on 127.0.0.1. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize, sep } from 'node:path'

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
}

/** A folder that is being served. */
export interface ServedFolder {
  readonly url: string
  readonly close: () => Promise<void>
}

/** Serves a folder on a port that the system chooses. A path without an extension is a page: `/server` is `server.html`. */
export async function serveFolder(folder: string): Promise<ServedFolder> {
  const server = createServer(({ url = '/' }, response) => {
    const path = decodeURIComponent(new URL(url, 'http://localhost').pathname)
    const page = path.endsWith('/') ? `${path}index.html` : extname(path) === '' ? `${path}.html` : path
    const file = normalize(join(folder, page))
    if (!file.startsWith(folder + sep)) return void response.writeHead(404).end()
    readFile(file).then(
      (content) => response.writeHead(200, { 'content-type': types[extname(file)] ?? 'text/plain' }).end(content),
      () => response.writeHead(404).end(),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
