/** An address that serves tasks, with one server or several behind it, for suites that must pass with both. */
import { onTestFinished } from 'vitest'
import type { TaskServerOptions } from '../../src/server/index.js'
import { call, post, untilEnded } from './cluster-client.js'
import { openEvents, type EventReader } from './event-source.js'
import { openSocket, type SocketClient } from './socket-client.js'

/** Servers behind one address. */
export interface Servers {
  /** The address to which workers connect. */
  readonly url: string
  readonly nodes: readonly { readonly httpUrl: string; readonly wsUrl: string }[]
  /** Cuts the connections of all workers. */
  readonly cut: () => void
}

export type OpenServers = (options: TaskServerOptions) => Promise<Servers>

/** A command for a watched instance (cluster-instance.ts). */
export const command = (tool_name: 'do' | 'hold', args: object, more: object = {}) => ({
  tool_name,
  intention: '',
  args,
  ...more,
})

/** Opens the servers. Each request of the test goes to the next server. */
export async function openServed(open: OpenServers, options: TaskServerOptions = {}) {
  const servers = await open(options)
  let turn = 0
  const next = () => servers.nodes[turn++ % servers.nodes.length]!
  const submission = (instanceId: string, commands: readonly object[]) => ({
    task_name: 'a task',
    task_intention: 'to be run',
    instanceId,
    commands,
  })
  return {
    ...servers,
    get: (path: string) => call(next().httpUrl, path),
    post: (path: string, body?: unknown, headers?: Record<string, string>) => post(next().httpUrl, path, body, headers),
    submission,
    /** Submits a task that must be accepted. Returns its id. */
    submit: async (instanceId: string, ...commands: readonly object[]): Promise<string> => {
      const { status, body } = await post(next().httpUrl, '/tasks', submission(instanceId, commands))
      if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
      return String(body['taskId'])
    },
    /** Waits until a task has ended. */
    ended: (id: string) => untilEnded(next().httpUrl, id),
    task: async (id: string) => (await call(next().httpUrl, `/tasks/${id}`)).body['task'] as Record<string, unknown>,
    socket: async (): Promise<SocketClient> => {
      const client = await openSocket(next().wsUrl)
      onTestFinished(() => client.close())
      await client.skipTo('welcome')
      return client
    },
    events: (id: string, after?: string): Promise<EventReader> =>
      openEvents(`${next().httpUrl}/tasks/${id}/events`, after === undefined ? {} : { 'last-event-id': after }),
    fetch: (path: string, init: RequestInit) => fetch(next().httpUrl + path, init),
  }
}
