/** Serves the files of the page, which `npm run build` writes. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { sendJson } from '../server/http/json.js'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}

interface StaticFile {
  readonly type: string
  readonly etag: string
  readonly cacheControl: string
  readonly plain: Buffer
  readonly zipped: Buffer
}

export function pageFolder(): string {
  return join(dirname(createRequire(import.meta.url).resolve('agent-tasks/package.json')), 'dist', 'page')
}

/** Serves the files of a folder. The first request reads them into memory. */
export function createStaticFiles(folder: string) {
  let files: ReadonlyMap<string, StaticFile> | undefined
  return {
    /** Answers a GET or HEAD request. */
    serve: (path: string, request: IncomingMessage, response: ServerResponse): void => {
      files ??= readFiles(folder)
      const file = files?.get(path === '/' ? '/index.html' : path)
      if (files === undefined && path === '/') {
        sendJson(response, 503, {
          error: `The page is not built: there is no ${folder}. Run npm run build.`,
          code: 'NOT_BUILT',
        })
      } else if (file === undefined) sendJson(response, 404, { error: 'Not found', code: 'NOT_FOUND' })
      else send(file, request, response)
    },
  }
}

function send(file: StaticFile, { headers, method }: IncomingMessage, response: ServerResponse): void {
  const isZipped = /\bgzip\b/.test(headers['accept-encoding'] ?? '')
  const common = { etag: file.etag, 'cache-control': file.cacheControl, vary: 'accept-encoding' }
  if (headers['if-none-match'] === file.etag) {
    response.writeHead(304, common).end()
    return
  }
  const body = isZipped ? file.zipped : file.plain
  response.writeHead(200, {
    ...common,
    'content-type': file.type,
    'content-length': String(body.length),
    ...(isZipped && { 'content-encoding': 'gzip' }),
  })
  response.end(method === 'HEAD' ? undefined : body)
}

/** Returns undefined if the folder cannot be read. */
function readFiles(folder: string): ReadonlyMap<string, StaticFile> | undefined {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    return new Map(
      entries.map((entry) => {
        const file = join(entry.parentPath, entry.name)
        return [`/${relative(folder, file).split(sep).join('/')}`, readFile(file)]
      }),
    )
  } catch {
    return undefined
  }
}

function readFile(file: string): StaticFile {
  const plain = readFileSync(file)
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 22)
  // Vite adds a hash of the content to the names of the files that it writes, so a file with such a name never changes.
  const isHashed = /-[\w-]{8,}\.\w+$/.test(file) && extname(file) !== '.html'
  return {
    type: TYPES[extname(file)] ?? 'application/octet-stream',
    // The ETag is weak (`W/`), because it is the same for the plain and the compressed file.
    etag: `W/"${hash}"`,
    cacheControl: isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    plain,
    zipped: gzipSync(plain, { level: 9 }),
  }
}
