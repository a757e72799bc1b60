/** A server for tests: free ports, no log, no environment, and an instance whose commands end when the test ends them. */
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  localInstance,
  startTaskServer,
  type Instance,
  type TaskServer,
  type TaskServerOptions,
} from '../../../src/server/index.js'
import { openSocket, type SocketClient } from '../../support/socket-client.js'
import type { ClientOptions } from 'ws'

export interface Held {
  readonly args: unknown
  readonly signal: AbortSignal
  progress(progress: number, total?: number, message?: string): void
  finish(result?: unknown): void
  fail(error: Error): void
}

export interface TestServer extends TaskServer {
  /** The next command of the tool `hold`, once it has started. */
  held(): Promise<Held>
  /** Calls a route. */
  call(path: string, init?: RequestInit): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }>
  post(path: string, body?: unknown, headers?: Record<string, string>): ReturnType<TestServer['call']>
  /** Opens a client socket and reads its `welcome`. */
  client(options?: ClientOptions & { url?: string }): Promise<SocketClient>
}

/** Starts a server that is closed when the test has finished. */
export async function startTestServer(options: TaskServerOptions = {}): Promise<TestServer> {
  const { instance, held } = createHolding('calc')
  const server = await startTaskServer({
    port: 0,
    logLevel: 'silent',
    env: {},
    instances: [instance],
    ...options,
    tasks: { wsPort: 0, abortGraceMs: 0, ...options.tasks },
  })
  onTestFinished(() => server.close({ drainMs: 0 }))
  const call: TestServer['call'] = async (path, init) => {
    const response = await fetch(server.httpUrl + path, init)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return {
      status: response.status,
      headers: response.headers,
      body: (isJson ? JSON.parse(text) : { text }) as Record<string, unknown>,
    }
  }
  return {
    ...server,
    held,
    call,
    post: (path, body, headers = {}) =>
      call(path, {
        method: 'POST',
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      }),
    client: async ({ url = server.wsUrl, ...more } = {}) => {
      const client = await openSocket(url, more)
      await client.skipTo('welcome')
      return client
    },
  }
}

/** An instance with `add`, which ends at once, `hold`, which ends when the test ends it, and `blow`, which fails. */
export function createHolding(id: string): { instance: Instance; held: () => Promise<Held> } {
  const waiting: Held[] = []
  const takers: ((held: Held) => void)[] = []
  const instance = localInstance({
    id,
    closeGraceMs: 0,
    tools: [
      {
        name: 'add',
        description: 'Adds two numbers.',
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        execute: ({ a, b }: { a: number; b: number }) => a + b,
      },
      { name: 'echo', execute: (args: unknown) => args },
      {
        name: 'blow',
        execute: () => {
          throw new Error('It blew up.')
        },
      },
      {
        name: 'hold',
        execute: (args: unknown, { signal, progress }) =>
          new Promise((resolve, reject) => {
            const held: Held = {
              args,
              signal,
              progress: (done, total, message) =>
                progress({
                  progress: done,
                  ...(total !== undefined && { total }),
                  ...(message !== undefined && { message }),
                }),
              finish: resolve,
              fail: reject,
            }
            const taker = takers.shift()
            if (taker === undefined) waiting.push(held)
            else taker(held)
          }),
      },
    ],
  })
  return {
    instance,
    held: () => {
      const held = waiting.shift()
      return held === undefined ? new Promise((resolve) => takers.push(resolve)) : Promise.resolve(held)
    },
  }
}

/** A task that calls the given tools. */
export function taskOf(
  ...tools: readonly (string | { readonly tool_name: string; readonly args?: Record<string, unknown> })[]
) {
  return {
    task_name: 'a task',
    task_intention: 'to be run',
    commands: tools.map((tool) =>
      typeof tool === 'string'
        ? { tool_name: tool, intention: '', args: { a: 2, b: 3 } }
        : { intention: '', args: {}, ...tool },
    ),
  }
}
