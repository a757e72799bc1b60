/** The server's side of `sockets.ts`: a task server, or `ws` that answers a task's first frame with the frames that task would get. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { localInstance } from '../../../src/instances/local-instance.js'
import { startTaskServer } from '../../../src/server/start-task-server.js'
import type { ServerSpec } from './sockets.js'

const spec = JSON.parse(process.argv[2] ?? '') as ServerSpec

/** A task's frames as the task server sends them: its acceptance, its command's start and end, its end. */
const FRAMES = [
  '{"type":"task_submit_response","success":true,"status":"accepted","taskId":"task_1767225600000_2s","queuePosition":1}',
  '{"type":"task_progress","taskId":"task_1767225600000_2s","instanceId":"instance-1","commandId":"cmd_1","commandIndex":0,"totalCommands":1,"status":"running","timestamp":1767225600000,"tool_name":"nothing"}',
  '{"type":"task_progress","taskId":"task_1767225600000_2s","instanceId":"instance-1","commandId":"cmd_1","commandIndex":0,"totalCommands":1,"status":"success","timestamp":1767225600000,"tool_name":"nothing","result":{"content":[]}}',
  '{"type":"task_complete","taskId":"task_1767225600000_2s","instanceId":"instance-1","status":"completed","timestamp":1767225600000,"summary":{"totalCommands":1,"successfulCommands":1,"duration":0},"results":[{"commandId":"cmd_1","status":"success","result":{"content":[]}}]}',
].map((frame) => Buffer.from(frame))

async function startTasks(): Promise<string> {
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0, maxQueueSize: 100_000 },
    limits: { framesPerMinute: 1e9, requestsPerMinute: 1e9, connectionsPerClient: 100_000 },
    env: {},
    writeLog: () => undefined,
    instances: Array.from({ length: spec.instances }, (_, at) =>
      localInstance({ id: `instance-${at}`, tools: [{ name: 'nothing', execute: () => undefined }] }),
    ),
  })
  return server.wsUrl
}

async function startEcho(): Promise<string> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  server.on('connection', (socket) => {
    socket.on('message', () => {
      for (const frame of FRAMES) socket.send(frame, { binary: false })
    })
  })
  await once(server, 'listening')
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}

process.once('disconnect', () => process.exit())
process.send?.({ url: await (spec.kind === 'tasks' ? startTasks() : startEcho()) })
