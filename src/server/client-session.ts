/** The session of one client: answers its requests, and delivers the events that it has subscribed to. */
import { completeMessage } from '../command-tasks/task-record.js'
import { parseJson } from '../data/parse-json.js'
import { clientMessageSchema, type ClientMessage, type RequestId } from '../protocol/client-messages.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../data/preview.js'
import type { Connection } from './connection.js'
import { whenThere, type Eventually } from './backend/eventually.js'
import type { TaskEvent } from './backend/event-log.js'
import type { Hub } from './backend/hub.js'
import { eventWithInlineResults, withInlineResults } from './backend/inline-results.js'
import { TASK_NOT_FOUND, whenAccepted, type TaskService } from './backend/task-service.js'

export interface ClientSessionOptions {
  readonly connection: Connection
  readonly service: TaskService
  readonly hub: Hub
  readonly maxSubscriptions: number
  readonly nesting: number
  /** Counts one frame towards the client's rate limit. Returns 0 if the frame is allowed, and otherwise how long the client must wait, in ms. */
  readonly takeFrame: () => number
  /** Whether a token is valid; always true when the server requires none. */
  readonly acceptsToken: (token: string) => boolean
  readonly onError: (error: unknown) => void
}

export interface ClientSession {
  /** Handles one frame. If it returns a promise, the next frame must wait for that promise. Never throws or rejects. */
  receive(text: string): Eventually<void>
  end(): void
}

const types = clientMessageSchema.options.map(({ shape }) => shape.type.value)

export function openClientSession(options: ClientSessionOptions): ClientSession {
  const { connection, service, hub, maxSubscriptions } = options
  /** Events that are held back until a submission is answered, because a client must get the id of a task before its events. */
  let held: TaskEvent[] | undefined
  const subscriptions = hub.join(
    (event) => {
      if (held === undefined) connection.deliver(event)
      else held.push(event)
    },
    maxSubscriptions,
    () => connection.giveUp('Events may be missing. Reconnect and subscribe again.'),
    (message) => connection.send(message),
  )
  const tooMany = `This connection has reached its limit of ${maxSubscriptions} subscriptions (limits.subscriptionsPerClient)`

  const release = (): void => {
    const events = held
    held = undefined
    for (const event of events ?? []) connection.deliver(event)
  }

  const fail = (code: string, error: string, message: string, requestId?: RequestId): void =>
    connection.send({ type: 'error', ...withId(requestId), message, error, code })

  const answer = (message: ClientMessage): Eventually<void> => {
    const reply = (body: object): void => connection.send({ ...body, ...withId(message.requestId) })
    switch (message.type) {
      case 'authenticate':
        reply({
          type: 'authenticate_response',
          ...(options.acceptsToken(message.token)
            ? { success: true }
            : { success: false, error: 'Invalid token.', code: 'UNAUTHORIZED' }),
        })
        return
      case 'task_submit': {
        const type = 'task_submit_response'
        if (!subscriptions.hasRoom) {
          reply({ type, success: false, status: 'rejected', error: tooMany, code: 'TOO_MANY_SUBSCRIPTIONS' })
          return
        }
        held = []
        const { requestId: _, ...task } = message
        return whenThere(service.submit(task), (submission) => {
          // Subscribes before the task is accepted, because its first events may be emitted in the same tick.
          if ('taskId' in submission) subscriptions.addTask(submission.taskId, 0)
          return whenThere(whenAccepted(submission), (submitted) => {
            if ('error' in submitted) {
              if ('taskId' in submission) subscriptions.removeTask(submission.taskId)
              reply({ type, success: false, status: 'rejected', ...submitted })
            } else reply({ type, success: true, status: 'accepted', ...submitted })
            release()
          })
        })
      }
      case 'task_list':
        return whenThere(service.list(message), (listed) => {
          if ('error' in listed) fail(listed.code, 'Invalid cursor', listed.error, message.requestId)
          else reply({ type: 'task_list_response', ...listed })
        })
      case 'task_status':
        return whenThere(service.get(message.taskId), (task) =>
          reply({
            type: 'task_status_response',
            task: task === undefined ? null : withInlineResults(task),
            ...(task === undefined && { error: TASK_NOT_FOUND }),
          }),
        )
      case 'task_cancel':
        // The client receives `task_complete` before this answer.
        return whenThere(service.cancel(message.taskId), (cancelled) =>
          reply({ type: 'task_cancel_response', taskId: message.taskId, ...cancelled }),
        )
      case 'subscribe_task': {
        const { taskId } = message
        return whenThere(service.follow(taskId), (followed) => {
          if (followed === undefined) {
            reply({ type: 'subscribe_ack', taskId, task: null, error: TASK_NOT_FOUND, code: 'TASK_NOT_FOUND' })
            return
          }
          const { task, seq } = followed
          const isOver = task.completedAt !== undefined
          if (!isOver && !subscriptions.addTask(taskId, seq, task.instanceId)) {
            fail('TOO_MANY_SUBSCRIPTIONS', 'Too many subscriptions', `${tooMany}.`, message.requestId)
            return
          }
          reply({ type: 'subscribe_ack', taskId, task: withInlineResults(task) })
          if (isOver && !subscriptions.hasSeen(taskId, seq)) {
            connection.send(eventWithInlineResults(completeMessage(task)))
          }
        })
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

  const receive = (text: string): Eventually<void> => {
    const parsed = parseJson(text, options.nesting)
    const requestId = 'value' in parsed ? requestIdOf(parsed.value) : undefined
    const waitMs = options.takeFrame()
    if (waitMs > 0) {
      fail(
        'RATE_LIMITED',
        'Too many messages',
        `Too many messages from this address (limits.framesPerMinute). Retry in ${waitMs} ms.`,
        requestId,
      )
      return
    }
    if ('error' in parsed) {
      fail(parsed.code, parsed.error, parsed.message)
      return
    }
    const type = fieldOf(parsed.value, 'type')
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
      const onFailure = (error: unknown): void => {
        release()
        options.onError(error)
        fail('INTERNAL_ERROR', 'Internal error', 'The server failed to answer this message.', requestId)
      }
      try {
        return answer(checked.data)?.catch(onFailure)
      } catch (error) {
        onFailure(error)
        return
      }
    }
    const { field, received, expected } = describeIssue(checked.error, parsed.value, 'message')
    const problem = `${field}: got ${preview(received)}, expected ${expected}.`
    if (type !== 'task_submit') {
      fail('INVALID_MESSAGE', 'Invalid message', problem, requestId)
      return
    }
    // Clients wait for a message of this type, so a refusal has it as well.
    const response = { type: 'task_submit_response', success: false, status: 'rejected', error: problem }
    connection.send({ ...response, ...withId(requestId), code: 'INVALID_TASK' })
  }

  return {
    receive,
    end: () => subscriptions.leave(),
  }
}

const withId = (requestId: RequestId): { requestId?: RequestId } => (requestId === undefined ? {} : { requestId })

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

/** Returns the id of a request that may be invalid, so that the client can match the error to the request. */
function requestIdOf(value: unknown): RequestId {
  const id = fieldOf(value, 'requestId')
  return (typeof id === 'string' && id.length <= 256) || typeof id === 'number' ? id : undefined
}
