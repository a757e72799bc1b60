/**
 * Keeps the recent events of each task, so that an interrupted event stream can resume.
 *
 * The log is bounded. For a running task it keeps the start and the end of each command, and the last 1,000 progress reports (at most 1 MiB). It keeps
 * the events of an ended task for at most five minutes, but not longer than the task itself. For all ended tasks together it keeps at most 50,000
 * events, and 32 MiB of reports. The results of commands do not count, because the events share them with the task.
 */
import type { Clock } from '../../system/clock.js'
import { isReport, KeptReports } from '../../command-tasks/kept-reports.js'
import { toJson } from '../http/json.js'
import { Retention } from '../../store/history/retention.js'
import { eventWithInlineResults } from './inline-results.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../../protocol/command-tasks.js'

export interface TaskEvent {
  /** The position of the event among the events of its task, from 1. */
  readonly seq: number
  readonly message: TaskProgressMessage | TaskCompleteMessage
  readonly isComplete: boolean
  /** The message as JSON. It is serialized when it is first read. */
  readonly frame: Buffer
  /** Frees the JSON. Call it when all subscribers have received the event. The log keeps the message, which shares its results with the task. */
  releaseFrame(): void
}

export interface EventLog {
  append(message: TaskProgressMessage | TaskCompleteMessage): TaskEvent
  /** The id of an event for clients. It contains the position of the event, and names the process that published it. */
  idOf(seq: number): string
  /** The position of the event with this id; undefined if another process has published the event. */
  seqOf(taskId: string, id: string): number | undefined
  /** The position of the last event; 0 if there is none. */
  lastSeq(taskId: string): number
  /** The events after the position `seq`; undefined if some of them are no longer kept. */
  after(taskId: string, seq: number): readonly TaskEvent[] | undefined
  dispose(): void
}

export interface EventLogOptions {
  readonly clock: Clock
  /** Whether clients can still see a task. The events of other tasks are removed. */
  readonly isKnown: (taskId: string) => boolean
  /** Whether an earlier process may have published events of a task. Default: no task has such events. */
  readonly isContinued?: (taskId: string) => boolean
  /** A prefix for the event ids of this process, which distinguishes them from those of an earlier process with the same tasks. */
  readonly life?: string
  /** The maximum time that events of an ended task are kept, in ms. Default 300000. */
  readonly retentionMs?: number
}

/** The limits for all ended tasks together: the number of events, and the texts of their reports, in UTF-16 units. */
const MAX_ENDED_EVENTS = 50_000
const MAX_ENDED_TEXT = 32 * 1024 * 1024

interface TaskLog {
  readonly taskId: string
  readonly events: LoggedEvent[]
  last: number
  /** The reports in `events`. Undefined before the first report and after the end of the task. */
  reports: KeptReports<LoggedEvent> | undefined
}

export function createEventLog(options: EventLogOptions): EventLog {
  const { clock, isKnown, isContinued = () => false, retentionMs = 300_000 } = options
  const prefix = options.life === undefined ? '' : `${options.life}-`
  const logs = new Map<string, TaskLog>()
  const ended = new Retention<TaskLog>({
    maxCount: MAX_ENDED_EVENTS,
    maxSize: MAX_ENDED_TEXT,
    onDropped: ({ taskId }) => logs.delete(taskId),
    sweep: {
      clock,
      everyMs: retentionMs,
      label: { name: 'removal of old events', kind: 'deadline' },
      isObsolete: ({ taskId }, ageMs) => ageMs >= retentionMs || !isKnown(taskId),
    },
  })

  return {
    append: (message) => {
      const { taskId } = message
      let log = logs.get(taskId)
      if (log === undefined) logs.set(taskId, (log = { taskId, events: [], last: 0, reports: undefined }))
      const { events } = log
      const event = new LoggedEvent((log.last += 1), message)
      events.push(event)
      if (isReport(message)) {
        log.reports ??= new KeptReports((dropped) => events.splice(events.indexOf(dropped), 1))
        log.reports.add(event, message)
      }
      if (event.isComplete) {
        ended.add(log, log.reports?.textLength, events.length)
        log.reports = undefined
        ended.sweep()
      }
      return event
    },
    idOf: (seq) => `${prefix}${seq}`,
    seqOf: (taskId, id) => {
      // Position 0, before the first event, is the same in every process.
      if (id === '0') return isContinued(taskId) ? undefined : 0
      const place = id.startsWith(prefix) ? id.slice(prefix.length) : ''
      return /^\d{1,15}$/.test(place) ? Number(place) : undefined
    },
    lastSeq: (taskId) => logs.get(taskId)?.last ?? 0,
    after: (taskId, seq) => {
      const log = logs.get(taskId)
      if (log === undefined) return seq === 0 ? [] : undefined
      return seq > log.last ? undefined : log.events.filter((event) => event.seq > seq)
    },
    dispose: () => {
      ended.close()
      logs.clear()
    },
  }
}

/** This is a class because many events are kept, and an object literal with a getter takes several times as much memory. */
class LoggedEvent implements TaskEvent {
  #frame: Buffer | undefined

  constructor(
    readonly seq: number,
    readonly message: TaskEvent['message'],
  ) {}

  get isComplete(): boolean {
    return this.message.type === 'task_complete'
  }

  get frame(): Buffer {
    return (this.#frame ??= Buffer.from(toJson(eventWithInlineResults(this.message))))
  }

  releaseFrame(): void {
    this.#frame = undefined
  }
}
