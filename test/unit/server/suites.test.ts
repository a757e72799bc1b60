/** What clients see of lanes and subscribers, on one server: `test/cluster/suites.test.ts` has several. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { startTaskServer } from '../../../src/server/index.js'
import { laneSuite } from '../../support/lane-suite.js'
import type { OpenServers } from '../../support/served-tasks.js'
import { subscriberSuite } from '../../support/subscriber-suite.js'

const open: OpenServers = async (options) => {
  const sockets = new Set<Socket>()
  const onSocket = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  subscribe('net.server.socket', onSocket)
  onTestFinished(() => void unsubscribe('net.server.socket', onSocket))
  const server = await startTaskServer({
    logLevel: 'silent',
    env: {},
    ...options,
    port: 0,
    tasks: { wsPort: 0, abortGraceMs: 0, ...options.tasks },
  })
  onTestFinished(() => server.close({ drainMs: 0 }))
  const { httpUrl: url } = server
  const cut = (): void => {
    for (const socket of sockets) if (socket.localPort === Number(new URL(url).port)) socket.destroy()
  }
  return { url, cut, nodes: [server] }
}

laneSuite('one server', open)
subscriberSuite('one server', open)
