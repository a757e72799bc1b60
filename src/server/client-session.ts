/** One client on its socket: reads its requests, answers each, and pushes the events that it subscribed to. */
import { completeMessage } from '../command-tasks/task-record.js'
import { clientMessageSchema, type ClientMessage, type RequestId } from '../protocol/client-messages.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'
import type { Connection } from './connection.js'
import type { Hub } from './hub.js'
import { parseJson } from './json.js'
import { TASK_NOT_FOUND, type TaskService } from './task-service.js'

export interface ClientSessionOptions {
  readonly connection: Connection
  readonly service: TaskService
  readonly hub: Hub
  readonly maxSubscriptions: number
  readonly nesting: number
  /** Takes one frame's worth of the client's rate; in how many ms it may go on, or 0. */
  readonly takeFrame: () => number
  /** Whether a token is one of the server's; also true where none is asked for. */
  readonly acceptsToken: (token: string) => boolean
  readonly onError: (error: unknown) => void
}

export interface ClientSession {
  /** Takes one frame. Never throws. */
  receive(text: string): void
  /** Ends its subscriptions. */
  end(): void
}

const types = clientMessageSchema.options.map(({ shape }) => shape.type.value)

export function openClientSession(options: ClientSessionOptions): ClientSession {
  const { connection, service, hub, maxSubscriptions } = options
  const subscriptions = hub.join((event) => connection.deliver(event), maxSubscriptions)
  const tooMany = `This connection has ${maxSubscriptions} subscriptions, the most it may have`

  const fail = (code: string, error: string, message: string, requestId?: RequestId): void =>
    connection.send({ type: 'error', ...withId(requestId), message, error, code })

  const answer = (message: ClientMessage): void => {
    const reply = (body: object): void => connection.send({ ...body, ...withId(message.requestId) })
    switch (message.type) {
      case 'authenticate':
        if (options.acceptsToken(message.token)) reply({ type: 'authenticate_response', success: true })
        else {
          reply({
            type: 'authenticate_response',
            success: false,
            error: 'That is no token of this server.',
            code: 'UNAUTHORIZED',
          })
        }
        return
      case 'task_submit': {
        const type = 'task_submit_response'
        if (!subscriptions.hasRoom) {
          reply({ type, success: false, status: 'rejected', error: tooMany, code: 'TOO_MANY_SUBSCRIPTIONS' })
          return
        }
        const submitted = service.submit(message)
        if ('error' in submitted) {
          reply({ type, success: false, status: 'rejected', ...submitted })
          return
        }
        subscriptions.addTask(submitted.taskId)
        reply({ type, success: true, status: 'accepted', ...submitted })
        return
      }
      case 'task_list': {
        const listed = service.list(message)
        if ('error' in listed) fail(listed.code, 'Invalid cursor', listed.error, message.requestId)
        else reply({ type: 'task_list_response', ...listed })
        return
      }
      case 'task_status': {
        const task = service.get(message.taskId) ?? null
        reply({ type: 'task_status_response', task, ...(task === null && { error: TASK_NOT_FOUND }) })
        return
      }
      case 'task_cancel':
        // Its complete is told before it is known that it was cancelled; both orders would do.
        reply({ type: 'task_cancel_response', taskId: message.taskId, ...service.cancel(message.taskId) })
        return
      case 'subscribe_task': {
        const { taskId } = message
        const task = service.get(taskId)
        if (task === undefined) {
          reply({ type: 'subscribe_ack', taskId, task: null, error: TASK_NOT_FOUND, code: 'TASK_NOT_FOUND' })
          return
        }
        const isOver = task.completedAt !== undefined
        if (!isOver && !subscriptions.addTask(taskId)) {
          fail('TOO_MANY_SUBSCRIPTIONS', 'Too many subscriptions', `${tooMany}.`, message.requestId)
          return
        }
        reply({ type: 'subscribe_ack', taskId, task })
        if (isOver) connection.send(completeMessage(task))
        return
      }
      case 'subscribe_instance':
        if (subscriptions.addInstance(message.instanceId)) {
          reply({ type: 'subscribe_ack', instanceId: message.instanceId })
        } else fail('TOO_MANY_SUBSCRIPTIONS', 'Too many subscriptions', `${tooMany}.`, message.requestId)
        return
      case 'unsubscribe_task':
        subscriptions.removeTask(message.taskId)
        reply({ type: 'unsubscribe_ack', taskId: message.taskId })
        return
      case 'unsubscribe_instance':
        subscriptions.removeInstance(message.instanceId)
        reply({ type: 'unsubscribe_ack', instanceId: message.instanceId })
    }
  }

  const read = (text: string): void => {
    const parsed = parseJson(text, options.nesting)
    const requestId = 'value' in parsed ? requestIdOf(parsed.value) : undefined
    const waitMs = options.takeFrame()
    if (waitMs > 0) {
      fail(
        'RATE_LIMITED',
        'Too many messages',
        `Too many messages from this address. Go on in ${waitMs} ms.`,
        requestId,
      )
      return
    }
    if ('error' in parsed) {
      fail(parsed.code, parsed.error, parsed.message)
      return
    }
    const type = typeOf(parsed.value)
    if (typeof type === 'string' && !types.includes(type as ClientMessage['type'])) {
      fail(
        'UNKNOWN_MESSAGE_TYPE',
        'Unknown message type',
        `message.type: got ${preview(type)}, expected one of ${types.join(', ')}.`,
        requestId,
      )
      return
    }
    const checked = clientMessageSchema.safeParse(parsed.value)
    if (checked.success) {
      try {
        answer(checked.data)
      } catch (error) {
        options.onError(error)
        fail('INTERNAL_ERROR', 'Internal error', 'The server failed to answer this message.', requestId)
      }
      return
    }
    const { field, received, expected } = describeIssue(checked.error, parsed.value, 'message')
    const code = type === 'task_submit' ? 'INVALID_TASK' : 'INVALID_MESSAGE'
    fail(code, 'Invalid message', `${field}: got ${preview(received)}, expected ${expected}.`, requestId)
  }

  return {
    receive: read,
    end: () => subscriptions.leave(),
  }
}

const withId = (requestId: RequestId): { requestId?: RequestId } => (requestId === undefined ? {} : { requestId })

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

const typeOf = (value: unknown): unknown => fieldOf(value, 'type')

/** The id of a request that may be wrong otherwise, so that its error can be told apart. */
function requestIdOf(value: unknown): RequestId {
  const id = fieldOf(value, 'requestId')
  return (typeof id === 'string' && id.length <= 256) || typeof id === 'number' ? id : undefined
}
