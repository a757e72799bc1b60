/**
 * What it costs the server to tell one event: this process is the server, its clients are another. A tool reports its progress, which is
 * told to everyone; that call is timed, with the turn of the event loop in which what it wrote goes out.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { localInstance } from '../../../src/instances/local-instance.js'
import { startTaskServer } from '../../../src/server/start-task-server.js'
import type { OwnTiming, Subject } from '../subject.js'

export interface Audience {
  readonly clients: number
  /** How many of them are subscribed to the instance. */
  readonly subscribed: number
}

const TURN_MS = 2

/** Lets what was sent go out. */
const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, TURN_MS))

async function connectClients(
  url: string,
  { clients, subscribed }: Audience,
  isRaw: boolean,
): Promise<() => Promise<void>> {
  const child = fork(new URL('audience.js', import.meta.url), [url, `${clients}`, `${isRaw ? 0 : subscribed}`])
  const [answer] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown]
  if (answer !== 'ready') throw new Error('the clients of the benchmark did not connect')
  return async () => {
    child.disconnect()
    await once(child, 'exit')
  }
}

/** Does something `times` times, a few at a time, and times the doing alone. */
async function timed(times: number, atOnce: number, act: () => void): Promise<OwnTiming> {
  let us = 0
  for (let left = times; left > 0; left -= atOnce) {
    const begun = process.cpuUsage()
    for (let n = Math.min(left, atOnce); n > 0; n -= 1) {
      act()
      // What is held back to the end of the turn counts, and each event has a turn of its own.
      await nextTurn()
    }
    const { user, system } = process.cpuUsage(begun)
    us += user + system
    await breathe()
  }
  return { ns: us * 1000 }
}

/** How many events are told before the sockets get a turn: few enough that no reader counts as slow. */
const atOnceOf = (subscribed: number): number => Math.max(1, Math.min(500, Math.floor(5000 / Math.max(1, subscribed))))

export async function serverEvents(audience: Audience): Promise<Subject> {
  let report: (progress: number) => void = () => undefined
  let release = (): void => undefined
  const started = new Promise<void>((resolve) => {
    release = resolve
  })
  const hang = new Promise<void>(() => undefined)
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0, commandTimeout: 86_400_000, drainMs: 0 },
    limits: {
      requestsPerMinute: 1e9,
      connectionsPerClient: 1_000_000,
      deadReaderBytes: 2 ** 30,
      slowReaderBytes: 2 ** 30,
    },
    env: {},
    writeLog: () => undefined,
    instances: [
      localInstance({
        id: 'instance',
        closeGraceMs: 0,
        tools: [
          {
            name: 'tell',
            execute: (_input, { progress }) => {
              report = progress
              release()
              return hang
            },
          },
        ],
      }),
    ],
  })
  const leave = await connectClients(server.wsUrl, audience, false)
  server.taskManager.submitTask({ instanceId: 'instance', task_name: 'task', commands: [{ tool_name: 'tell' }] })
  await started
  await breathe()
  let count = 0
  return {
    run: (times) => timed(times, atOnceOf(audience.subscribed), () => report((count += 1))),
    close: async () => {
      await leave()
      await server.close({ drainMs: 0 })
    },
  }
}

/** One serialisation and as many raw sends. */
export async function rawSends(audience: Audience): Promise<Subject> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  await once(server, 'listening')
  const open = new Set<WebSocket>()
  server.on('connection', (socket) => open.add(socket))
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
  const leave = await connectClients(url, audience, true)
  let count = 0
  return {
    run: (times) =>
      timed(times, atOnceOf(audience.subscribed), () => {
        const frame = Buffer.from(
          JSON.stringify({
            type: 'task_progress',
            taskId: 'task_1767225600000_1',
            instanceId: 'instance',
            commandId: 'cmd_1',
            commandIndex: 0,
            totalCommands: 1,
            status: 'running',
            timestamp: Date.now(),
            tool_name: 'tell',
            progress: (count += 1),
          }),
        )
        for (const socket of open) socket.send(frame, { binary: false })
      }),
    close: async () => {
      await leave()
      server.close()
    },
  }
}
