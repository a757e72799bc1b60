/**
 * What one event costs the server, in us: this process is the server, its clients are in another. A tool reports progress, which goes to
 * every subscriber; the report is timed together with the turn of the event loop in which its frames are written.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { importEntry } from '../package.js'
import type { Subject } from '../subject.js'

export interface Audience {
  readonly clients: number
  /** How many of them are subscribed to the instance. */
  readonly subscribed: number
}

const PAUSE_MS = 2

/** Lets the clients read. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS))

/** Connects the clients. Returns a function that closes them. */
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

/** Sends `times` events, with a pause whenever `atOnce` were sent. Returns the time of one without the pauses. */
async function timed(times: number, atOnce: number, sendEvent: () => void): Promise<number> {
  let us = 0
  for (let left = times; left > 0; left -= atOnce) {
    const start = process.cpuUsage()
    for (let n = Math.min(left, atOnce); n > 0; n -= 1) {
      sendEvent()
      // The server may hold frames back to the end of the turn, so each event has its own.
      await nextTurn()
    }
    const { user, system } = process.cpuUsage(start)
    us += user + system
    await pause()
  }
  return us / times
}

/** So few events between two pauses that no client counts as a slow reader. */
const atOnceOf = ({ subscribed }: Audience): number =>
  Math.max(1, Math.min(500, Math.floor(5000 / Math.max(1, subscribed))))

export async function serverEvents(audience: Audience, checkout: string): Promise<Subject> {
  const { localInstance, startTaskServer } = await importEntry(checkout, './server')
  const never = new Promise<void>(() => undefined)
  let setReport: (report: (progress: number) => void) => void
  const reporting = new Promise<(progress: number) => void>((resolve) => (setReport = resolve))
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0, commandTimeout: 86_400_000, drainMs: 0 },
    limits: { connectionsPerClient: 1_000_000, deadReaderBytes: 2 ** 30, slowReaderBytes: 2 ** 30 },
    env: {},
    writeLog: () => undefined,
    instances: [
      localInstance({
        id: 'instance',
        closeGraceMs: 0,
        tools: [
          {
            name: 'report',
            execute: (_input, { progress }) => {
              setReport(progress)
              return never
            },
          },
        ],
      }),
    ],
  })
  const disconnect = await connectClients(server.wsUrl, audience, false)
  server.taskManager.submitTask({ instanceId: 'instance', task_name: 'task', commands: [{ tool_name: 'report' }] })
  const report = await reporting
  await pause()
  let count = 0
  return {
    run: (times) => timed(times, atOnceOf(audience), () => report((count += 1))),
    close: async () => {
      await disconnect()
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
  const disconnect = await connectClients(url, audience, true)
  let count = 0
  return {
    run: (times) =>
      timed(times, atOnceOf(audience), () => {
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
            tool_name: 'report',
            progress: (count += 1),
          }),
        )
        for (const socket of open) socket.send(frame, { binary: false })
      }),
    close: async () => {
      await disconnect()
      server.close()
    },
  }
}
