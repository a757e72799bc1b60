/** A page for tests: a free port, the tasks of an agent host, and a reader of its stream. */
import { request as httpRequest } from 'node:http'
import { onTestFinished } from 'vitest'
import { createTaskPage } from '../../../src/page/index.js'
import type { ChangesEvent, Hello, PageTask, ReadyEvent } from '../../../src/page/wire.js'
import type { TaskPageOptions } from '../../../src/page/create-task-page.js'

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

/** An event of the stream. */
export type PageEvent =
  | { readonly id: string | undefined; readonly type: 'hello'; readonly data: Hello }
  | { readonly id: string | undefined; readonly type: 'tasks'; readonly data: { readonly tasks: PageTask[] } }
  | { readonly id: string | undefined; readonly type: 'ready'; readonly data: ReadyEvent }
  | { readonly id: string | undefined; readonly type: 'changes'; readonly data: ChangesEvent }

/** What a page has made of its stream. */
export interface Reader {
  readonly tasks: Map<string, PageTask>
  readonly events: PageEvent[]
  readonly lastEventId: string | undefined
  readonly ready: ReadyEvent | undefined
  /** How many heartbeats came. */
  readonly beats: number
  /** Resolves when the condition holds; looks after each event. */
  until(condition: (reader: Reader) => boolean): Promise<void>
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>
  close(): void
}

export async function startPage(options: Omit<TaskPageOptions, 'port'>) {
  const page = await createTaskPage({ ...options, port: 0 })
  onTestFinished(() => page.close())
  const [base = '', token = ''] = page.url.split('/#token=')
  const authorization = `Bearer ${token}`

  const call = async (path: string, init: Omit<RequestInit, 'headers'> = {}): Promise<Answered> => {
    const response = await fetch(`${base}/api/${path}`, { ...init, headers: { authorization } })
    const text = await response.text()
    const isJson = response.headers.get('content-type') === 'application/json'
    return {
      status: response.status,
      headers: response.headers,
      body: (isJson ? JSON.parse(text) : { text }) as Record<string, unknown>,
    }
  }

  const read = async (lastEventId?: string): Promise<Reader> => {
    const abort = new AbortController()
    const response = await fetch(`${base}/api/events`, {
      headers: { authorization, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) },
      signal: abort.signal,
    })
    if (response.status !== 200) throw new Error(`the stream was refused: ${response.status}`)
    onTestFinished(() => abort.abort())
    const reader = {
      tasks: new Map<string, PageTask>(),
      events: [] as PageEvent[],
      lastEventId,
      ready: undefined as ReadyEvent | undefined,
      beats: 0,
    }
    const waiting = new Set<() => void>()
    const apply = (block: string): void => {
      if (block.startsWith(':')) {
        reader.beats += 1
        return
      }
      const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]))
      const event = {
        id: fields['id'],
        type: fields['event'],
        data: JSON.parse(fields['data'] ?? '') as unknown,
      } as PageEvent
      reader.events.push(event)
      reader.lastEventId = event.id ?? reader.lastEventId
      if (event.type === 'hello' && !event.data.resumed) reader.tasks.clear()
      if (event.type === 'ready') reader.ready = event.data
      if (event.type === 'hello' || event.type === 'ready') return
      for (const task of event.data.tasks ?? []) reader.tasks.set(task.key, task)
      if (event.type === 'changes') for (const key of event.data.removed ?? []) reader.tasks.delete(key)
    }
    const run = async (): Promise<void> => {
      let text = ''
      const decoder = new TextDecoder()
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += decoder.decode(chunk, { stream: true })
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        blocks.forEach(apply)
        for (const look of [...waiting]) look()
      }
    }
    const ended = run().catch(() => undefined)
    return Object.assign(reader, {
      ended,
      close: () => abort.abort(),
      until: (condition: (reader: Reader) => boolean) =>
        new Promise<void>((resolve) => {
          const look = (): void => {
            if (!condition(reader as Reader)) return
            waiting.delete(look)
            resolve()
          }
          waiting.add(look)
          look()
        }),
    })
  }

  return {
    page,
    base,
    token,
    authorization,
    call,
    read,
    get: (path: string) => call(path),
    post: (path: string, body: unknown = {}) =>
      call(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
    /** A request with headers that fetch would not send. */
    raw: (path: string, headers: Readonly<Record<string, string>>, method = 'GET') =>
      new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
        const sent = httpRequest(base + path, { method, headers, agent: false }, (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          response.once('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }))
        })
        sent.once('error', reject).end()
      }),
  }
}
