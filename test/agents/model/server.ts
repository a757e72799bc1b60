/**
 * A scripted model on loopback, for agents that speak Anthropic's Messages, OpenAI's Responses and Chat Completions, or Gemini's API. The prompt has the
 * script (`script.ts`). It records every request, without its headers.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { anthropic } from './anthropic.js'
import { chatCompletions } from './chat-completions.js'
import type { Dialect } from './dialect.js'
import { gemini } from './gemini.js'
import type { Json } from './json.js'
import { responses } from './responses.js'
import { nextStep, type ModelRequest, type Step } from './script.js'

const DIALECTS: readonly Dialect[] = [anthropic, responses, chatCompletions, gemini]

/** One request, and what it was answered. */
export interface RecordedRequest extends ModelRequest {
  readonly path: string
  /** The size of the body. */
  readonly bytes: number
  readonly step: Step
  readonly at: number
}

export interface ScriptedModel {
  readonly url: string
  /** All requests so far, in the order in which they came. */
  readonly requests: readonly RecordedRequest[]
  close(): Promise<void>
}

/** The text that an agent gets with an error. Tests look for it in what a task shows. */
export const errorText = (status: number): string => `the scripted model refuses with ${status}`

export async function startScriptedModel(): Promise<ScriptedModel> {
  const requests: RecordedRequest[] = []
  const stop = new AbortController()
  const server = createServer((request, response) => {
    answer(request, response, requests, stop.signal).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () => {
      stop.abort()
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  requests: RecordedRequest[],
  signal: AbortSignal,
): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  const { body, bytes } = await bodyOf(request)
  const dialect = DIALECTS.find(({ path }) => path.test(pathname))
  if (dialect === undefined || request.method !== 'POST') {
    sendJson(response, request.method === 'POST' ? 404 : 200, {})
    return
  }
  const read = dialect.read(body, pathname)
  const refusals = (key: string): number =>
    requests.filter(({ step }) => step.key === key && step.answer.kind === 'error').length
  const step = nextStep(read, refusals)
  requests.push({ ...read, path: pathname, bytes, step, at: Date.now() })
  if (step.waitMs > 0) await wait(step.waitMs, undefined, { signal }).catch(() => undefined)
  send(response, dialect, read, step)
}

function send(response: ServerResponse, dialect: Dialect, request: ModelRequest, { answer }: Step): void {
  if (answer.kind === 'hang') return
  if (answer.kind === 'error') {
    sendJson(response, answer.status, dialect.error(answer.status, errorText(answer.status)))
    return
  }
  const id = randomUUID().replaceAll('-', '').slice(0, 20)
  if (!request.isStreamed) {
    sendJson(response, 200, dialect.whole(answer, request, id))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  for (const event of dialect.events(answer, request, id)) response.write(event)
  response.end()
}

function sendJson(response: ServerResponse, status: number, value: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function bodyOf(request: IncomingMessage): Promise<{ readonly body: Json; readonly bytes: number }> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const all = Buffer.concat(chunks)
  try {
    return { body: JSON.parse(all.toString()) as Json, bytes: all.length }
  } catch {
    return { body: {}, bytes: all.length }
  }
}
