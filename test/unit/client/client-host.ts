/** Shared by the tests of the client: a client on scripted sockets, and messages of a server. */
import { onTestFinished } from 'vitest'
import { createTaskClient, type TaskClientOptions } from '../../../src/client/task-client.js'
import type { TaskMessage } from '../../../src/client/session.js'
import type { Task } from '../../../src/protocol/command-tasks.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { scriptSockets, settle, type ScriptedSocket } from '../../support/scripted-sockets.js'

export const welcome = (authenticationRequired = false) => ({
  type: 'welcome',
  sessionId: 's1',
  serverVersion: '0.0.0',
  message: 'hello',
  authenticationRequired,
})

export const progress = (taskId: string, commandIndex = 0, status = 'running') => ({
  type: 'task_progress',
  taskId,
  instanceId: 'calc',
  commandId: `cmd_${commandIndex + 1}`,
  commandIndex,
  totalCommands: 2,
  status,
  timestamp: 1,
  tool_name: 'add',
  intention: '',
})

export const complete = (taskId: string, status = 'completed') => ({
  type: 'task_complete',
  taskId,
  instanceId: 'calc',
  status,
  timestamp: 2,
  summary: { totalCommands: 2, successfulCommands: 2, duration: 1 },
  results: [],
})

export const snapshot = (id: string, status: 'queued' | 'running' | 'completed' = 'running'): Task => ({
  id,
  instanceId: 'calc',
  name: 'sum',
  intention: '',
  commands: [],
  currentCommandIndex: 0,
  createdAt: 1,
  ...(status === 'completed' ? { status, completedAt: 2, duration: 0 } : { status }),
})

export const submission = { task_name: 'sum', commands: [{ tool_name: 'add', intention: '', args: {} }] }

/** A client on scripted sockets and a manual clock. It is closed after the test, and must leave no timer and no socket. */
export function setUpClient(options: Partial<TaskClientOptions> = {}) {
  const clock = createManualClock(1_000_000)
  const sockets = scriptSockets()
  const client = createTaskClient({
    url: 'http://127.0.0.1:3300',
    clock,
    WebSocket: sockets.WebSocket,
    reconnect: { initialMs: 100, maxMs: 1000, jitter: 0 },
    ...options,
  })
  onTestFinished(async () => {
    sockets.answersClose = true
    await client.close()
    if (clock.pending > 0) throw new Error(`${clock.pending} timers are left after close`)
    const open = sockets.sockets.filter(({ closedWith }) => closedWith === undefined)
    if (open.length > 0) throw new Error(`${open.length} sockets are left after close`)
  })

  /** Accepts the connection of the client. */
  const accept = async (): Promise<ScriptedSocket> => {
    await settle()
    const socket = sockets.last
    socket.open()
    socket.receive(welcome())
    await settle()
    return socket
  }

  /** Answers the last request of a type. */
  const answer = async (socket: ScriptedSocket, type: string, body: object): Promise<void> => {
    await settle()
    const request = socket.sentOf(type).at(-1)
    if (request === undefined) throw new Error(`no ${type} was sent`)
    socket.receive({ ...body, requestId: request['requestId'] })
    await settle()
  }

  const acknowledge = (socket: ScriptedSocket, task: Task): Promise<void> =>
    answer(socket, 'subscribe_task', { type: 'subscribe_ack', taskId: task.id, task })

  return { clock, sockets, client, accept, answer, acknowledge }
}

/** Reads a watch in the background. */
export function read(watch: AsyncIterable<TaskMessage, undefined>) {
  const events: TaskMessage[] = []
  const state: { events: TaskMessage[]; isOver: boolean; error: unknown } = { events, isOver: false, error: undefined }
  const reading = async (): Promise<void> => {
    try {
      for await (const event of watch) events.push(event)
    } catch (error) {
      state.error = error
    }
    state.isOver = true
  }
  void reading()
  return state
}

/** A summary of events. */
export const words = (events: readonly TaskMessage[]): string[] =>
  events.map((event) => (event.type === 'task_complete' ? event.status : `${event.commandIndex} ${event.status}`))
