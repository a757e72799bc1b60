/** Handles the requests of the page. Any program on this machine may read the page's files. Every other request needs the token. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { unauthorized, type Access, type Refusal } from '../server/http/access.js'
import { readBody, sendJson } from '../server/http/json.js'
import { cutText } from '../data/cut-text.js'
import { parseJson } from '../data/parse-json.js'
import { actionAt } from './actions.js'
import { INTERNAL_ERROR, refusalOf } from './answers.js'
import type { ConnectionLimits } from './connection-limits.js'
import { listSubagents } from './launch.js'
import { detailOf, imagesOf, valuesOf } from './details.js'
import type { Sources } from './sources.js'
import type { PageEntry } from './page-entry.js'
import { ofFeatures } from './page-features.js'
import type { createStaticFiles } from './static-files.js'
import { MAX_STREAMS, type Streams } from './streams.js'
import { readPiece, valueBytes } from './values.js'
import type { PageOutput } from './wire.js'

export interface RouterOptions {
  readonly access: Access
  readonly sources: Sources
  readonly streams: Streams
  readonly connections: Pick<ConnectionLimits, 'hold'>
  readonly files: ReturnType<typeof createStaticFiles>
  /** Called with an unexpected error of a request. */
  readonly onFailure: (error: unknown) => void
}

/** The maximum size of a request body, in bytes, and the maximum nesting depth of its JSON. */
const MAX_BODY_BYTES = 1024 * 1024
const MAX_NESTING = 100
/** The maximum size of one piece of a value, and of one piece of a task's output, in bytes. */
const PIECE_BYTES = 1024 * 1024
const OUTPUT_BYTES = 64 * 1024

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob:",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const

/** The parts of a task whose path has one more segment, such as `value/goal` and `image/0`. */
const NAMED: ReadonlySet<string | undefined> = new Set(['image', 'value'])
/** The query parameter of each part of a task. */
const PARAMETERS: ReadonlyMap<string | undefined, string> = new Map([
  ['output', 'cursor'],
  ['value', 'offset'],
])

const queries = ofFeatures('queries')
type Query = (typeof queries)[string]

const notFound = (what: string): Failure => ({ status: 404, error: `There is no ${what}.`, code: 'NOT_FOUND' })

interface Failure {
  readonly status: 400 | 404 | 405 | 413 | 429
  readonly error: string
  readonly code: string
}

export function createRouter({ access, sources, streams, connections, files, onFailure }: RouterOptions) {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
    const foreign = access.checkSource(request)
    if (foreign !== undefined) {
      refuse(request, response, foreign)
      return
    }
    const url = urlOf(request)
    if (url === undefined) {
      fail(request, response, notFound('such address'))
      return
    }
    const { method = 'GET' } = request
    if (!url.pathname.startsWith('/api/')) {
      if (method === 'GET' || method === 'HEAD') files.serve(url.pathname, request, response)
      else {
        fail(request, response, {
          status: 405,
          error: 'The files of the page can only be read: use GET or HEAD.',
          code: 'METHOD_NOT_ALLOWED',
        })
      }
      return
    }
    if (!access.isAuthorized(request)) {
      refuse(request, response, unauthorized(request))
      return
    }
    connections.hold(request, response)
    response.setHeader('cache-control', 'no-store')
    const path = pathOf(url)
    const failure =
      path === undefined
        ? notFound('such address')
        : method === 'GET'
          ? await read(path, url, request, response)
          : method === 'POST'
            ? (unknownParameter(url) ?? (await act(path, request, response)))
            : ({ status: 405, error: 'Use GET or POST.', code: 'METHOD_NOT_ALLOWED' } as const)
    if (failure !== undefined) fail(request, response, failure)
  }

  const read = async (
    path: readonly string[],
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Failure | undefined> => {
    const [kind = '', key = '', part, name = ''] = path
    const query = path.length === 1 && Object.hasOwn(queries, kind) ? queries[kind] : undefined
    if (query !== undefined) return readQuery(query, url.searchParams, response)
    if (kind === 'subagents' && path.length === 1) {
      const misused = unknownParameter(url)
      if (misused === undefined) sendJson(response, 200, listSubagents(sources))
      return misused
    }
    const length = kind === 'events' ? 1 : part === undefined ? 2 : NAMED.has(part) ? 4 : 3
    if (path.length !== length) return notFound('such address')
    const { searchParams } = url
    const misused = unknownParameter(url, PARAMETERS.get(part))
    if (misused !== undefined) return misused
    if (kind === 'events') {
      const id = request.headers['last-event-id']
      return streams.open(response, typeof id === 'string' ? id : undefined)
        ? undefined
        : {
            status: 429,
            error: `${MAX_STREAMS} pages are already open, which is the maximum. Close one of them.`,
            code: 'TOO_MANY_STREAMS',
          }
    }
    const entry = kind === 'tasks' ? sources.state.journal.get(key) : undefined
    if (entry === undefined) return notFound(kind === 'tasks' ? 'such task, or it is no longer kept' : 'such address')
    switch (part) {
      case undefined:
        sendJson(response, 200, await detailOf(sources, entry))
        return undefined
      case 'output':
        return readOutput(entry, searchParams, response)
      case 'image': {
        const image = /^\d{1,6}$/.test(name) ? imagesOf(sources, entry)[Number(name)] : undefined
        if (image === undefined) return notFound('such image')
        const bytes = Buffer.from(image.data, 'base64')
        response.writeHead(200, { 'content-type': image.mimeType, 'content-length': String(bytes.length) }).end(bytes)
        return undefined
      }
      case 'value': {
        const value = valuesOf(sources, entry).get(name)
        if (value === undefined) return notFound('such value')
        if (!searchParams.has('offset')) {
          const type = value.type === 'json' ? 'application/json' : 'text/plain'
          response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-disposition': 'attachment' })
          pipeline(valueBytes(value), response, () => undefined)
          return undefined
        }
        const offset = numberOf(searchParams, 'offset')
        if (typeof offset === 'object') return offset
        sendJson(response, 200, await readPiece(value, offset, PIECE_BYTES))
        return undefined
      }
      default:
        return notFound('such address')
    }
  }

  const readQuery = async (
    query: Query,
    parameters: URLSearchParams,
    response: ServerResponse,
  ): Promise<Failure | undefined> => {
    const twice = [...parameters.keys()].find((name, at, names) => names.indexOf(name) < at)
    if (twice !== undefined) {
      return {
        status: 400,
        error: `Query parameter ${JSON.stringify(cutText(twice, 40))} occurs more than once.`,
        code: 'INVALID_INPUT',
      }
    }
    try {
      sendJson(response, 200, await query(sources, parameters))
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined) throw error
      sendJson(response, refusal.status, refusal.body)
    }
    return undefined
  }

  const readOutput = (entry: PageEntry, parameters: URLSearchParams, response: ServerResponse): Failure | undefined => {
    if (entry.kind !== 'async') return notFound('output of a command task')
    const cursor = numberOf(parameters, 'cursor')
    if (typeof cursor === 'object') return cursor
    const { record, isEnded } = entry
    const chunk = sources.manager?.readOutput(record.id, { cursor, maxBytes: OUTPUT_BYTES })
    const output: PageOutput =
      chunk === undefined
        ? // The manager has removed the task with its output. The record still has the end of the output.
          { text: cursor === 0 ? (record.outputTail ?? '') : '', cursor: Math.max(cursor, 1), dropped: 0, isEnd: true }
        : {
            text: chunk.text,
            cursor: chunk.nextCursor,
            dropped: chunk.skippedBytes,
            isEnd: isEnded && chunk.remainingBytes === 0,
          }
    sendJson(response, 200, output)
    return undefined
  }

  const act = async (
    path: readonly string[],
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Failure | undefined> => {
    const action = actionAt(sources, path, onFailure)
    if (action === undefined) return notFound('such action')
    const text = await readBody(request, MAX_BODY_BYTES)
    if (text === undefined) {
      return {
        status: 413,
        error: `The body of the request is too large: it may have at most ${MAX_BODY_BYTES} bytes.`,
        code: 'TOO_LARGE',
      }
    }
    const parsed = text === '' ? { value: {} } : parseJson(text, MAX_NESTING)
    if (!('value' in parsed)) return { status: 400, error: parsed.message, code: parsed.code }
    try {
      const { status, body } = await action(parsed.value)
      sendJson(response, status, body)
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined) throw error
      sendJson(response, refusal.status, refusal.body)
    }
    return undefined
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response).catch((error: unknown) => {
      // The client has disconnected while it was sending the request. That is not an error of the server.
      if (request.destroyed && !request.complete) return
      onFailure(error)
      if (response.headersSent) response.destroy()
      else sendJson(response, 500, { error: INTERNAL_ERROR, code: 'INTERNAL' })
    })
  }
}

/** Returns undefined if the URL cannot be parsed. */
function urlOf({ url = '/' }: IncomingMessage): URL | undefined {
  try {
    return new URL(url, 'http://localhost')
  } catch {
    return undefined
  }
}

/** Returns the decoded segments of a path after `/api/`; undefined if they cannot be decoded. */
function pathOf({ pathname }: URL): readonly string[] | undefined {
  try {
    return pathname.slice('/api/'.length).split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/**
 * Returns a failure if the URL has an unknown or repeated query parameter.
 * @param known the only allowed parameter, which may occur once
 */
function unknownParameter({ searchParams }: URL, known?: string): Failure | undefined {
  const names = [...searchParams.keys()]
  const unknown = names.find((name, index) => name !== known || names.indexOf(name) < index)
  if (unknown === undefined) return undefined
  const expected = known === undefined ? 'no parameters' : `only ${known}, once`
  return {
    status: 400,
    error: `Query parameter ${JSON.stringify(cutText(unknown, 40))}: expected ${expected}.`,
    code: 'INVALID_INPUT',
  }
}

function numberOf(parameters: URLSearchParams, name: string): number | Failure {
  const text = parameters.get(name) ?? '0'
  return /^\d{1,15}$/.test(text)
    ? Number(text)
    : {
        status: 400,
        error: `Query parameter ${name}: got ${JSON.stringify(cutText(text, 40))}, expected an integer >= 0.`,
        code: 'INVALID_INPUT',
      }
}

function refuse(request: IncomingMessage, response: ServerResponse, { status, error, code, headers }: Refusal): void {
  request.resume()
  sendJson(response, status, { error, code }, { connection: 'close', ...headers })
}

function fail(request: IncomingMessage, response: ServerResponse, { status, error, code }: Failure): void {
  request.resume()
  sendJson(response, status, { error, code }, request.complete || status !== 413 ? {} : { connection: 'close' })
}
