/** Sends requests to a page of another process, as the page in a browser does. */
import { z } from 'zod'
import { systemClock } from '../../system/clock.js'
import { ConnectionError, TaskServerError } from '../../client/client-errors.js'
import { callRest } from '../../client/rest.js'
import { InvalidInputError } from '../../errors.js'
import type { ChangesEvent, PageTaskDetail, TasksEvent } from '../../page/wire.js'

/** How long the page may take to answer, in ms. */
const REQUEST_MS = 30_000

/** The page cannot be reached, or was closed. */
export class PageConnectionError extends ConnectionError {}

export interface PageConnection {
  detail(key: string): Promise<PageTaskDetail>
  value(key: string, name: string): Promise<string>
  /**
   * Cancels a task.
   * @returns how long its program may take to end, in ms, if it is being stopped
   * @throws AgentTasksError `TASK_ENDED` when the task had already ended
   */
  cancel(key: string, reason: string | undefined): Promise<number | undefined>
  /**
   * Launches a task of a subagent of the host. Returns its id.
   * @throws AgentTasksError with the reason, if the host refuses it
   */
  launch(subagent: string, body: object): Promise<string>
  /**
   * Performs another action on a task.
   * @throws AgentTasksError with the reason, if the task cannot be changed
   */
  act(key: string, action: string, body: object): Promise<void>
  /**
   * The events of the page: first the snapshot of all tasks, then each change.
   * @throws the reason of the signal when it aborts
   * @throws AgentTasksError when the connection is lost
   */
  events(signal: AbortSignal): AsyncGenerator<PageStreamEvent>
}

/** An event of the page. `ready` comes after the last part of the snapshot. */
export type PageStreamEvent =
  | { readonly type: 'hello' }
  | { readonly type: 'tasks'; readonly data: TasksEvent }
  | { readonly type: 'ready' }
  | { readonly type: 'changes'; readonly data: ChangesEvent }

// The page belongs to the same package, so the fields that it sends are not checked one by one.
const detailSchema = z.custom<PageTaskDetail>((value) => typeof (value as PageTaskDetail | null)?.task === 'object')
const launchedSchema = z.looseObject({ key: z.string() })
const cancelledSchema = z.looseObject({ stopsWithinMs: z.number().optional() })

/**
 * @param link the link that a host prints, with the token of the page
 * @throws INVALID_INPUT if the link is invalid
 */
export function connectPage(option: string, link: string): PageConnection {
  const { base, token } = parseLink(option, link)

  const call = async <T extends z.ZodType>(path: string, schema: T, body?: object): Promise<z.output<T>> => {
    const { signal } = new AbortController()
    const options = { baseUrl: base, token, fetch: undefined, signal, clock: systemClock, timeoutMs: REQUEST_MS }
    try {
      return await callRest(options, path, schema, body)
    } catch (error) {
      if (error instanceof ConnectionError) throw new PageConnectionError(error.code, error.message, { cause: error })
      throw error instanceof TaskServerError && error.code === 'UNAUTHORIZED' ? refused() : error
    }
  }

  const open = async (path: string, signal: AbortSignal): Promise<Response> => {
    const url = base + path
    try {
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, redirect: 'error', signal })
      if (response.ok) return response
      await response.body?.cancel()
      if (response.status === 401) throw refused()
      throw new TaskServerError(`HTTP_${response.status}`, `${url} answered ${response.status}.`, response.status)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof TaskServerError) throw error
      throw new PageConnectionError('CONNECTION_FAILED', `Cannot reach the page at ${base}.`, { cause: error })
    }
  }

  return {
    detail: (key) => call(`/api/tasks/${encodeURIComponent(key)}`, detailSchema),
    value: async (key, name) => {
      const path = `/api/tasks/${encodeURIComponent(key)}/value/${encodeURIComponent(name)}`
      return (await open(path, AbortSignal.timeout(REQUEST_MS))).text()
    },
    cancel: async (key, reason) => {
      const body = reason === undefined ? {} : { reason }
      return (await call(`/api/tasks/${encodeURIComponent(key)}/cancel`, cancelledSchema, body)).stopsWithinMs
    },
    launch: async (subagent, body) => {
      const { key } = await call(`/api/subagents/${encodeURIComponent(subagent)}/launch`, launchedSchema, body)
      return key.slice(key.indexOf(':') + 1)
    },
    act: async (key, action, body) => {
      await call(`/api/tasks/${encodeURIComponent(key)}/${action}`, z.looseObject({}), body)
    },
    events: async function* (signal) {
      const response = await open('/api/events', signal)
      try {
        for await (const { event, data } of serverSentEvents(response.body)) {
          yield { type: event, data: JSON.parse(data) as unknown } as PageStreamEvent
        }
      } catch (error) {
        signal.throwIfAborted()
        throw lost(error)
      }
      throw lost()
    },
  }

  function lost(cause?: unknown): PageConnectionError {
    return new PageConnectionError('CONNECTION_LOST', `The page at ${base} has ended.`, { cause })
  }
}

const refused = (): TaskServerError =>
  new TaskServerError('PAGE_UNAUTHORIZED', 'The page does not accept the token of this link.', 401)

function parseLink(option: string, link: string): { readonly base: string; readonly token: string } {
  const url = URL.canParse(link) ? new URL(link) : undefined
  const token = new URLSearchParams(url?.hash.slice(1)).get('token') ?? ''
  if (url === undefined || !/^https?:$/.test(url.protocol) || token === '') {
    const expected = 'the link of a page with its token, as in http://127.0.0.1:3320/#token=…'
    // The token is removed, because others may read the error.
    throw new InvalidInputError(option, link.replace(/#.*$/, ''), expected)
  }
  return { base: url.origin, token }
}

/** Reads the events of a stream (HTML Standard, section 9.2, server-sent events). */
async function* serverSentEvents(
  body: Response['body'],
): AsyncGenerator<{ readonly event: string; readonly data: string }> {
  const decoder = new TextDecoder()
  let unread = ''
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    unread += decoder.decode(chunk, { stream: true })
    const blocks = unread.split('\n\n')
    unread = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]))
      const [event, data] = [fields.get('event'), fields.get('data')]
      if (event !== undefined && data !== undefined) yield { event, data }
    }
  }
}
