/**
 * Seed 004's WebSocket server: clients submit, list, cancel and subscribe, and every subscriber gets each event as JSON of its own.
 *
 * The seed keeps the subscriptions to a task until their socket closes. Here `sweep` also drops those of tasks that the manager has
 * dropped: they would fill the heap of a benchmark and slow it down.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import type { SeedTaskManager } from './task-manager.js'
import type { SeedCompleteMessage, SeedProgressMessage, SeedRequest, SeedSubmitMessage, SeedTask } from './types.js'

export interface SeedTaskServer {
  readonly url: string
  sweep(): void
}

type Subscriptions = Map<string, Set<WebSocket>>

export async function startSeedTaskServer(manager: SeedTaskManager): Promise<SeedTaskServer> {
  const taskSubscriptions: Subscriptions = new Map()
  const instanceSubscriptions: Subscriptions = new Map()

  const broadcast = (message: SeedProgressMessage | SeedCompleteMessage): void => {
    sendTo(taskSubscriptions.get(message.taskId), message)
    const task = manager.getTask(message.taskId)
    if (task !== undefined) sendTo(instanceSubscriptions.get(task.instanceId), message)
  }
  manager.on('progress', broadcast)
  manager.on('complete', broadcast)

  const submit = (socket: WebSocket, request: SeedSubmitMessage): void => {
    const result = manager.submitTask(request)
    if ('error' in result) {
      send(socket, { type: 'task_submit_response', success: false, error: result.error })
      return
    }
    subscribe(taskSubscriptions, result.taskId, socket)
    const { taskId, queuePosition } = result
    send(socket, { type: 'task_submit_response', success: true, taskId, queuePosition })
  }

  const handle = (socket: WebSocket, request: SeedRequest): void => {
    switch (request.type) {
      case 'task_submit':
        submit(socket, request)
        break
      case 'task_list': {
        const tasks = manager.listTasks(request.instanceId, request.status).map(summarise)
        send(socket, { type: 'task_list_response', tasks })
        break
      }
      case 'task_status':
        send(socket, { type: 'task_status_response', task: manager.getTask(request.taskId) ?? null })
        break
      case 'task_cancel': {
        const { taskId } = request
        send(socket, { type: 'task_cancel_response', taskId, success: manager.cancelTask(taskId) })
        break
      }
      case 'subscribe_task':
        subscribe(taskSubscriptions, request.taskId, socket)
        break
      case 'subscribe_instance':
        subscribe(instanceSubscriptions, request.instanceId, socket)
        break
      default:
        send(socket, { type: 'error', error: 'Unknown message type' })
    }
  }

  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket) => {
    send(socket, { type: 'welcome', sessionId: randomUUID(), message: 'Connected to Moonsurf Task Server' })
    socket.on('message', (data: Buffer) => handle(socket, JSON.parse(data.toString()) as SeedRequest))
    socket.on('close', () => {
      unsubscribe(taskSubscriptions, socket)
      unsubscribe(instanceSubscriptions, socket)
    })
  })
  await once(server, 'listening')
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sweep: () => {
      manager.cleanupTasks(0)
      for (const taskId of taskSubscriptions.keys()) {
        if (manager.getTask(taskId) === undefined) taskSubscriptions.delete(taskId)
      }
    },
  }
}

const send = (socket: WebSocket, message: object): void => socket.send(JSON.stringify(message))

function sendTo(sockets: Set<WebSocket> | undefined, message: object): void {
  sockets?.forEach((socket) => {
    if (socket.readyState === WebSocket.OPEN) send(socket, message)
  })
}

function subscribe(subscriptions: Subscriptions, id: string, socket: WebSocket): void {
  const sockets = subscriptions.get(id)
  if (sockets === undefined) subscriptions.set(id, new Set([socket]))
  else sockets.add(socket)
}

function unsubscribe(subscriptions: Subscriptions, socket: WebSocket): void {
  for (const [id, sockets] of subscriptions) {
    sockets.delete(socket)
    if (sockets.size === 0) subscriptions.delete(id)
  }
}

function summarise({ commands, ...task }: SeedTask): object {
  const { id, name, intention, status, instanceId, currentCommandIndex, createdAt, startedAt, completedAt } = task
  const totalCommands = commands.length
  return {
    id,
    name,
    intention,
    status,
    instanceId,
    currentCommandIndex,
    totalCommands,
    createdAt,
    startedAt,
    completedAt,
  }
}
