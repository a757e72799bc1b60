/** Requests to the server's REST routes. Each answer is checked against its schema. */
import type { z } from 'zod'
import { clearLongTimeout, setLongTimeout, type Clock } from '../system/clock.js'
import { restErrorSchema } from '../protocol/rest.js'
import { ConnectionError, TaskServerError, unauthorizedError } from './client-errors.js'
import { findFetch, type FetchLike } from './platform.js'

export interface RestOptions {
  /** The URL without a slash at the end. */
  readonly baseUrl: string
  readonly token: string | undefined
  readonly fetch: FetchLike | undefined
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The time limit for the whole answer, in ms. */
  readonly timeoutMs: number
}

/**
 * Sends a POST if there is a body, and otherwise a GET.
 * @throws AgentTasksError when the server answers with an error
 * @throws AgentTasksError when there is no valid answer
 */
export async function callRest<T extends z.ZodType>(
  options: RestOptions,
  path: string,
  schema: T,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<z.output<T>> {
  const url = options.baseUrl + path
  const { status, ok, text } = await send(options, url, body, headers)
  const json = parseJson(text)
  if (!ok) {
    const said = restErrorSchema.safeParse(json)
    if (said.success && said.data.code === 'UNAUTHORIZED') throw unauthorizedError(said.data.error, status)
    if (said.success) throw new TaskServerError(said.data.code, said.data.error, status)
    throw new TaskServerError(`HTTP_${status}`, `${url} answered with the HTTP status ${status}.`, status)
  }
  const answer = schema.safeParse(json)
  if (answer.success) return answer.data
  throw new ConnectionError(
    'BAD_ANSWER',
    `${url} sent an invalid answer. Check that the URL is that of an agent-tasks server of this version.`,
  )
}

async function send(
  { token, fetch, clock, timeoutMs, ...options }: RestOptions,
  url: string,
  body: object | undefined,
  headers: Readonly<Record<string, string>>,
) {
  const limit = new AbortController()
  const late = new ConnectionError('REQUEST_TIMEOUT', `${url} did not answer within ${timeoutMs} ms.`)
  const timer = setLongTimeout(clock, () => limit.abort(late), timeoutMs)
  const signal = AbortSignal.any([options.signal, limit.signal])
  try {
    const response = await findFetch(fetch)(url, {
      headers: {
        accept: 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      signal,
      // After a redirect, another server could get the token.
      redirect: 'error',
    })
    return { ok: response.ok, status: response.status, text: await response.text() }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const why = error instanceof Error ? `${error.message}${causeOf(error)}` : String(error)
    throw new ConnectionError('CONNECTION_FAILED', `Cannot reach ${url} (${why}).`, { cause: error })
  } finally {
    clearLongTimeout(clock, timer)
  }
}

/** The message of Node's `fetch` is only "fetch failed". The cause has the reason. */
function causeOf({ cause }: Error): string {
  return cause instanceof Error && cause.message !== '' ? `: ${cause.message}` : ''
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
