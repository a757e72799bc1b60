/**
 * The events of one task as Server-Sent Events (HTML Standard, section 9.2). The stream ends with `task_complete`. A client whose stream was
 * interrupted continues with `Last-Event-ID`.
 */
import { completeMessage } from '../command-tasks/task-record.js'
import { toJson } from './http/json.js'
import type { ServerConfig } from '../protocol/server-config.js'
import type { TaskEvent } from './backend/event-log.js'
import { END_ID, type FollowedTask } from './backend/followed-task.js'
import type { Hub } from './backend/hub.js'
import { eventWithInlineResults, withInlineResults } from './backend/inline-results.js'
import type { Metrics } from './metrics.js'

export interface EventStreamOptions {
  readonly followed: FollowedTask
  readonly hub: Hub
  readonly limits: ServerConfig['limits']
  readonly metrics: Metrics
  /** Destroys the connection of a client that does not read. */
  readonly cut: () => void
  /** Called once, when the stream has ended for any reason. */
  readonly onEnd: () => void
}

export interface EventStream {
  readonly body: ReadableStream<Uint8Array>
  readonly isOpen: boolean
  /** Sends a comment, because proxies close a quiet stream. */
  beat(): void
  /** Ends the stream. Events that were written before are still sent. */
  end(): void
}

export function openEventStream(options: EventStreamOptions): EventStream {
  const { followed, hub, limits, metrics } = options
  const { task, seq: last, missed } = followed
  let controller: ReadableStreamDefaultController<Uint8Array>
  let isOpen = true

  const finish = (): void => {
    isOpen = false
    subscriptions.leave()
    options.onEnd()
  }
  const end = (): void => {
    if (!isOpen) return
    finish()
    controller.close()
  }
  const waiting = (): number => limits.deadReaderBytes - (controller.desiredSize ?? 0)
  const write = (text: string): void => {
    if (!isOpen) return
    if (waiting() > limits.deadReaderBytes) {
      metrics.closedSlowReader()
      finish()
      options.cut()
      return
    }
    controller.enqueue(encoder.encode(text))
  }
  const deliver = (event: TaskEvent): void => {
    if (!event.isComplete && waiting() > limits.slowReaderBytes) {
      metrics.droppedFrame()
      return
    }
    write(eventText(event.message.type, event.frame.toString(), followed.idOf(event.seq)))
    if (event.isComplete) end()
  }
  // Called when events were missed. The connection is cut, and the client reconnects with `Last-Event-ID`.
  const subscriptions = hub.join(deliver, 1, () => {
    if (!isOpen) return
    finish()
    options.cut()
  })

  const body = new ReadableStream<Uint8Array>(
    {
      start: (started) => {
        controller = started
        // A first line is sent at once, because some proxies hold back the headers until there is one.
        write(': events\n\n')
        if (missed !== undefined) for (const event of missed) deliver(event)
        else {
          const snapshot = toJson({ type: 'subscribe_ack', taskId: task.id, task: withInlineResults(task) })
          // The id of the snapshot lies before the end of the task. A client that loses the connection here therefore reconnects for `task_complete`.
          const isOver = task.completedAt !== undefined
          write(eventText('subscribe_ack', snapshot, followed.idOf(Math.max(0, last - (isOver ? 1 : 0)))))
        }
        if (!isOpen) return
        if (task.completedAt === undefined) subscriptions.addTask(task.id, last)
        else {
          if (missed === undefined) {
            write(
              eventText(
                'task_complete',
                toJson(eventWithInlineResults(completeMessage(task))),
                last === 0 ? END_ID : followed.idOf(last),
              ),
            )
          }
          end()
        }
      },
      cancel: () => {
        if (isOpen) finish()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: limits.deadReaderBytes }),
  )
  return {
    body,
    get isOpen() {
      return isOpen
    },
    beat: () => {
      if (isOpen && waiting() <= limits.slowReaderBytes) write(': keep-alive\n\n')
    },
    end,
  }
}

const encoder = new TextEncoder()

/** Formats one event. `JSON.stringify` writes no line breaks, so one `data` line is enough. */
function eventText(type: string, json: string, id: string): string {
  return `id: ${id}\nevent: ${type}\ndata: ${json}\n\n`
}
