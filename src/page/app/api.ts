/** Sends requests with the token to the server. */
import { omitUndefined } from '../../data/omit-undefined.js'
import type { OpenStream } from './stream/connection.js'

/** The server refused a request, or did not answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  constructor(
    readonly status: number,
    message: string,
    readonly code?: string,
    /** The path of the wrong field in the request. */
    readonly field?: string,
  ) {
    super(message)
  }
}

export interface Api {
  get<T>(path: string, signal?: AbortSignal): Promise<T>
  post<T>(path: string, body: unknown): Promise<T>
  blob(path: string, signal?: AbortSignal): Promise<Blob>
  readonly openStream: (lastEventId: string | undefined, signal: AbortSignal) => Promise<OpenStream>
}

/** @param token returns the current token. It is called for each request, because a person may enter another token */
export function createApi(token: () => string | undefined): Api {
  const request = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await send(path, init).catch((error: unknown) => {
      if (init.signal?.aborted === true) throw error
      throw new ApiError(0, 'The server does not answer, so it is unknown whether it has carried out the request.')
    })
    if (!response.ok) throw await toError(response)
    return response
  }
  const send = (path: string, init: RequestInit): Promise<Response> => {
    const headers = new Headers(init.headers)
    const bearer = token()
    if (bearer !== undefined) headers.set('authorization', `Bearer ${bearer}`)
    return fetch(path, { ...init, headers, cache: 'no-store' })
  }
  return {
    get: async <T>(path: string, signal?: AbortSignal) =>
      (await (await request(path, omitUndefined({ signal }))).json()) as T,
    post: async <T>(path: string, body: unknown) => {
      const headers = { 'content-type': 'application/json' }
      return (await (await request(path, { method: 'POST', headers, body: JSON.stringify(body) })).json()) as T
    },
    blob: async (path, signal) => (await request(path, omitUndefined({ signal }))).blob(),
    openStream: async (lastEventId, signal) => {
      const headers: HeadersInit = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
      const response = await send('/api/events', { signal, headers })
      const { status, body, ok } = response
      return { status, pieces: piecesOf(body), ...(!ok && { error: (await toError(response)).message }) }
    },
  }
}

async function* piecesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
  if (!body) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    // Empty texts are passed on as well, because they show that the server is alive.
    yield decoder.decode(value, { stream: true })
  }
}

async function toError(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as { error?: string; code?: string; field?: string }
  return new ApiError(
    response.status,
    body.error ?? `The server answered with the HTTP status ${response.status}.`,
    body.code,
    body.field,
  )
}
