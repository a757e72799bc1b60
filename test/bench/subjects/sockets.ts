/** Tasks over real WebSockets, and raw `ws` that echoes the same frames. The clients are this process, the server is another. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { Subject } from '../subject.js'

export interface SocketLoad {
  readonly clients: number
  readonly instances: number
  /** How many tasks each client has under way. */
  readonly window: number
}

/** What a server process is asked for. */
export interface ServerSpec {
  readonly kind: 'tasks' | 'echo'
  readonly instances: number
}

/** A task over the server, from `task_submit` to `task_complete`. */
export const tasksOverSockets = (load: SocketLoad): Promise<Subject> => overSockets('tasks', load)

/** The frames of such a task, sent back by `ws` alone. */
export const echoedFrames = (load: SocketLoad): Promise<Subject> => overSockets('echo', load)

async function startServer(spec: ServerSpec): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(new URL('socket-server.js', import.meta.url), [JSON.stringify(spec)])
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return { child, url }
}

async function overSockets(kind: 'tasks' | 'echo', { clients, instances, window }: SocketLoad): Promise<Subject> {
  const { child, url } = await startServer({ kind, instances })
  const sockets = await Promise.all(
    Array.from({ length: clients }, async () => {
      const socket = new WebSocket(url)
      await once(socket, 'open')
      return socket
    }),
  )
  let durations: number[] = []
  let left = 0
  let toStart = 0
  let done = (): void => undefined
  const startNext = sockets.map((socket, at) => {
    // Tasks of one lane end in the order in which they were submitted.
    const begun: number[] = []
    const frame = JSON.stringify({
      type: 'task_submit',
      task_name: 'task',
      instanceId: `instance-${at % instances}`,
      commands: [{ tool_name: 'nothing', args: { at } }],
    })
    const start = (): void => {
      if (toStart === 0) return
      toStart -= 1
      begun.push(performance.now())
      socket.send(frame)
    }
    socket.on('message', (data: Buffer) => {
      // The type comes first in every frame.
      if (!data.toString('latin1', 0, 24).startsWith('{"type":"task_complete"')) return
      durations.push(performance.now() - (begun.shift() ?? NaN))
      left -= 1
      if (left === 0) done()
      else start()
    })
    return start
  })
  return {
    run: (times) => {
      left = toStart = times
      const completed = new Promise<undefined>((resolve) => (done = () => resolve(undefined)))
      for (let n = 0; n < window; n += 1) for (const start of startNext) start()
      return completed
    },
    takeDurations: () => {
      const taken = durations
      durations = []
      return taken
    },
    close: async () => {
      for (const socket of sockets) socket.terminate()
      child.disconnect()
      await once(child, 'exit')
    },
  }
}
