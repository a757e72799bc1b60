/** The events of one task as Server-Sent Events. The stream ends with `task_complete`; one that broke off goes on by `Last-Event-ID`. */
import { completeMessage } from '../command-tasks/task-record.js'
import type { Task } from '../protocol/command-tasks.js'
import type { ServerConfig } from '../protocol/server-config.js'
import type { EventLog, TaskEvent } from './event-log.js'
import type { Hub } from './hub.js'
import { toJson } from './json.js'
import type { Metrics } from './metrics.js'

export interface EventStreamOptions {
  readonly task: Task
  readonly hub: Hub
  readonly log: EventLog
  readonly limits: ServerConfig['limits']
  readonly metrics: Metrics
  /** Cuts the connection of a reader that does not read. */
  readonly cut: () => void
  /** Called once, whoever ends the stream. */
  readonly onEnd: () => void
}

export interface EventStream {
  readonly body: ReadableStream<Uint8Array>
  readonly isOpen: boolean
  /** Keeps whatever is in between from closing a quiet stream. */
  beat(): void
  /** Ends it; what was told before is still sent. */
  end(): void
}

/**
 * What a client has not had yet.
 * @param lastEventId what it had last, as it says
 * @returns undefined when that is not known: then it begins with a snapshot
 */
export function eventsToResume(
  log: EventLog,
  task: Task,
  lastEventId: string | undefined,
): readonly TaskEvent[] | undefined {
  if (lastEventId === undefined || !/^\d{1,15}$/.test(lastEventId)) return undefined
  const seq = Number(lastEventId)
  // A task that has ended has had events: when none is known, they were forgotten.
  if (task.completedAt !== undefined && log.lastSeq(task.id) === 0) return undefined
  return log.after(task.id, seq)
}

export function openEventStream(options: EventStreamOptions, resumed: readonly TaskEvent[] | undefined): EventStream {
  const { task, hub, log, limits, metrics } = options
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
  const tell = (event: TaskEvent): void => {
    if (!event.isComplete && waiting() > limits.slowReaderBytes) {
      metrics.droppedFrame()
      return
    }
    write(eventText(event.message.type, event.frame.toString(), event.seq))
    if (event.isComplete) end()
  }
  const subscriptions = hub.join(tell, 1)

  const body = new ReadableStream<Uint8Array>(
    {
      start: (started) => {
        controller = started
        // Headers alone may be held back on their way; a first line is not.
        write(': events\n\n')
        if (resumed !== undefined) for (const event of resumed) tell(event)
        else {
          const snapshot = toJson({ type: 'subscribe_ack', taskId: task.id, task })
          write(eventText('subscribe_ack', snapshot, log.lastSeq(task.id)))
        }
        if (!isOpen) return
        if (task.completedAt === undefined) subscriptions.addTask(task.id)
        else {
          if (resumed === undefined) {
            write(eventText('task_complete', toJson(completeMessage(task)), log.lastSeq(task.id)))
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
      if (isOpen && waiting() <= limits.slowReaderBytes) write(': still here\n\n')
    },
    end,
  }
}

const encoder = new TextEncoder()

/** JSON has no line breaks of its own, so one `data` line holds it. */
function eventText(type: string, json: string, seq: number): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${json}\n\n`
}
