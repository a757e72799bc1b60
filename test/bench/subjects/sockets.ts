/** Tasks over real WebSockets, from `task_submit` to `task_complete`. The clients are in this process, the server is in another. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { Subject } from '../subject.js'

export interface SocketLoad {
  readonly clients: number
  readonly instances: number
  /** How many tasks each client has under way. */
  readonly window: number
  readonly commands: number
}

export interface ServerSpec {
  readonly kind: 'package' | 'seed'
  readonly instances: number
  readonly checkout: string
}

export const packageServer = (load: SocketLoad, checkout: string): Promise<Subject> =>
  overSockets('package', load, checkout)

export const seedServer = (load: SocketLoad, checkout: string): Promise<Subject> => overSockets('seed', load, checkout)

async function overSockets(kind: ServerSpec['kind'], load: SocketLoad, checkout: string): Promise<Subject> {
  const { clients, instances, window, commands } = load
  const spec: ServerSpec = { kind, instances, checkout }
  const server = fork(new URL('socket-server.js', import.meta.url), [JSON.stringify(spec)])
  const [url] = (await once(server, 'message')) as [string]
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
    // The tasks of one instance end in the order of their submission.
    const startedAt: number[] = []
    const frame = JSON.stringify({
      type: 'task_submit',
      task_name: 'task',
      task_intention: 'do nothing',
      instanceId: `instance-${at % instances}`,
      commands: Array.from({ length: commands }, () => ({
        tool_name: 'nothing',
        intention: 'do nothing',
        args: { at },
      })),
    })
    const start = (): void => {
      if (toStart === 0) return
      toStart -= 1
      startedAt.push(performance.now())
      socket.send(frame)
    }
    socket.on('message', (data: Buffer) => {
      // The type is the first field of every frame.
      if (data.toString('latin1', 0, 24) !== '{"type":"task_complete",') {
        if (data.includes('"success":false') || data.includes('"type":"error"')) throw new Error(data.toString())
        return
      }
      if (!data.includes('"status":"completed"')) throw new Error(data.toString())
      durations.push(performance.now() - (startedAt.shift() ?? NaN))
      left -= 1
      if (left === 0) done()
      else start()
    })
    return start
  })
  return {
    prepare: async () => {
      const swept = once(server, 'message')
      server.send('sweep')
      await swept
    },
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
      server.disconnect()
      await once(server, 'exit')
    },
  }
}
