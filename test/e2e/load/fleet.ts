/**
 * The instances of a load run, and what happens to them: functions of the server's process that are disconnected and come back, workers of
 * `connectInstance` whose connections are cut, and bare workers that are also taken over.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { connectInstance } from '../../../src/client/index.js'
import { isolateAbortListeners } from '../../../src/isolation/isolated-signal.js'
import { localInstance, type TaskServer } from '../../../src/server/index.js'
import { cuttableSockets } from '../../support/cuttable-sockets.js'
import { openSocket, type SocketClient } from '../../support/socket-client.js'
import type { Diary } from './recorded-tools.js'

export interface Member {
  readonly id: string
  /** Disconnects it in one of the ways of its kind; resolves when it takes commands again. */
  disturb(): Promise<'disconnect' | 'cut' | 'takeover'>
  end(): Promise<void>
}

/** A function of the server's process. */
export function addLocal(server: TaskServer, diary: Diary, id: string, graceMs: number): Member {
  const connect = (): void => {
    const tools = diary.toolsOf(id, graceMs)
    server.instances.connect(localInstance({ id, tools, closeGraceMs: 0, onError: () => undefined }))
  }
  connect()
  return {
    id,
    disturb: async () => {
      // Not awaited: it comes back under its id in the same step, while its calls are still winding down.
      void server.instances.disconnect(id)
      connect()
      return Promise.resolve('disconnect')
    },
    end: () => Promise.resolve(),
  }
}

/** A worker of `agent-tasks/client`. */
export async function addWorker(server: TaskServer, diary: Diary, id: string): Promise<Member> {
  const sockets = cuttableSockets()
  const worker = await connectInstance(server.httpUrl, {
    id,
    // An abort reaches it over the socket, before the next call does: once heard, the call is over for the server.
    tools: diary.toolsOf(id, 0),
    WebSocket: sockets.WebSocket,
    reconnect: { initialMs: 5, maxMs: 50 },
  })
  return {
    id,
    disturb: async () => {
      const { count } = sockets
      sockets.cut()
      // Whether the server hears of the loss before the return, or takes the return for a take-over, is left to chance.
      await sockets.opened(count + 1)
      while (!worker.isConnected) await delay(1)
      return 'cut'
    },
    end: () => worker.close(),
  }
}

/** A worker that speaks the protocol by itself, and can be taken over by another socket with its secret. */
export async function addBareWorker(server: TaskServer, diary: Diary, id: string): Promise<Member> {
  let secret = ''
  let url = ''
  let socket: SocketClient | undefined
  let generation = 0
  const register = async (): Promise<void> => {
    const response = await fetch(`${server.httpUrl}/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ instanceId: id }),
    })
    if (response.status !== 201) throw new Error(`POST /register: ${response.status} ${await response.text()}`)
    const body = (await response.json()) as { secret: string; websocketUrl: string }
    secret = body.secret
    url = body.websocketUrl
  }
  const open = async (): Promise<SocketClient> => {
    const opened = await openSocket(url)
    // The old socket's program does not know yet that it was taken over: each is a place of its own.
    const place = `${id}#${(generation += 1)}`
    opened.send({ type: 'hello', instanceId: id, secret })
    await opened.skipTo('welcome')
    void serve(opened, diary.toolsOf(place, 0))
    return opened
  }
  await register()
  socket = await open()
  return {
    id,
    disturb: async () => {
      const old = socket
      if (generation % 2 === 1) {
        socket = await open()
        const { code } = await old!.closed
        if (code !== 4409) throw new Error(`${id} was taken over, and its socket was closed with ${code}`)
        return 'takeover'
      }
      old!.socket.terminate()
      await old!.closed
      while (server.instances.get(id) !== undefined) await delay(1)
      await register()
      socket = await open()
      return 'cut'
    },
    end: () => socket!.close(),
  }
}

/** Answers the calls of one socket until it closes. */
async function serve(socket: SocketClient, tools: ReturnType<Diary['toolsOf']>): Promise<void> {
  const running = new Map<unknown, AbortController>()
  const reply = (message: object): void => {
    if (socket.socket.readyState === socket.socket.OPEN) socket.send(message)
  }
  const abort = (controller: AbortController): void => controller.abort()
  const run = async ({ callId, name }: Readonly<Record<string, unknown>>): Promise<void> => {
    const controller = new AbortController()
    isolateAbortListeners(controller.signal, () => undefined)
    running.set(callId, controller)
    const tool = tools.find((one) => one.name === name)
    const progress = (report: object): void => reply({ type: 'tool_progress', callId, ...report })
    try {
      const text = String(await tool?.execute(undefined, { signal: controller.signal, progress }))
      reply({ type: 'tool_result', callId, result: { content: [{ type: 'text', text }] } })
    } catch (error) {
      reply({ type: 'tool_error', callId, code: 'FAILED', message: String(error) })
    }
    running.delete(callId)
  }
  try {
    for (;;) {
      const message = await socket.next()
      if (message.type === 'tool_call') void run(message)
      else if (message.type === 'ping') reply({ type: 'pong' })
      else if (message.type === 'tool_cancel') {
        const controller = running.get(message['callId'])
        if (controller !== undefined) abort(controller)
      }
    }
  } catch {
    // The socket has closed: nobody waits for what runs.
    for (const controller of running.values()) abort(controller)
  }
}
