/**
 * The events of one task as Server-Sent Events (HTML Standard, section 9.2). The stream ends with `task_complete`; an interrupted one
 * resumes after `Last-Event-ID`.
 */
import { completeMessage } from '../command-tasks/task-record.js'
import { toJson } from '../http/json.js'
import type { Task } from '../protocol/command-tasks.js'
import type { ServerConfig } from '../protocol/server-config.js'
import type { EventLog, TaskEvent } from './event-log.js'
import type { Hub } from './hub.js'
import { eventWithInlineResults, withInlineResults } from './inline-results.js'
import type { Metrics } from './metrics.js'

/** A task, and where its events stand. */
export interface FollowedTask {
  readonly task: Task
  /** The place of its last event; 0 when none is known. */
  readonly seq: number
  /** The events that the client has missed; undefined when they are not known: it gets the task first. */
  readonly missed: readonly TaskEvent[] | undefined
  /** The id of an event for clients. */
  idOf(seq: number): string
}

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
  /** Sends a comment, so that proxies do not close a quiet stream. */
  beat(): void
  /** Ends the stream; events that are already written are still sent. */
  end(): void
}

/**
 * The events that a client has missed.
 * @param lastEventId the `Last-Event-ID` header
 * @returns undefined when they are not known: the stream begins with a snapshot then
 */
export function eventsToResume(
  log: EventLog,
  task: Task,
  lastEventId: string | undefined,
): readonly TaskEvent[] | undefined {
  if (lastEventId === END_ID && task.completedAt !== undefined) return []
  const seq = lastEventId === undefined ? undefined : log.seqOf(task.id, lastEventId)
  if (seq === undefined) return undefined
  // An ended task had events: if none are known, they were removed.
  if (task.completedAt !== undefined && log.lastSeq(task.id) === 0) return undefined
  return log.after(task.id, seq)
}

/** The id of the end of a task whose numbered events were removed. */
const END_ID = 'end'

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
  // The client comes back with its last event.
  const subscriptions = hub.join(deliver, 1, () => {
    if (!isOpen) return
    finish()
    options.cut()
  })

  const body = new ReadableStream<Uint8Array>(
    {
      start: (started) => {
        controller = started
        // Proxies may hold back headers until there is a first line.
        write(': events\n\n')
        if (missed !== undefined) for (const event of missed) deliver(event)
        else {
          const snapshot = toJson({ type: 'subscribe_ack', taskId: task.id, task: withInlineResults(task) })
          // The end of an ended task follows as an event of its own, for which a client that is cut off here comes back.
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

/** `JSON.stringify` writes no line breaks, so one `data` line is enough. */
function eventText(type: string, json: string, id: string): string {
  return `id: ${id}\nevent: ${type}\ndata: ${json}\n\n`
}
