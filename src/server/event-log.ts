/**
 * The recent events of each task, so that an interrupted event stream can resume.
 *
 * It is bounded: a running task keeps every start and end of a command, and its last 1,000 reports in between, or fewer: 1 MiB. An ended task
 * keeps its events for five minutes at most, no longer than the task itself is kept, and all ended tasks together keep 50,000, and 32 MiB of
 * reports. Results are not counted here: events share them with their task.
 */
import { elapsedMs, type Clock } from '../clock.js'
import { toJson } from '../http/json.js'
import { eventWithInlineResults } from './inline-results.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'

/** A published event. */
export interface TaskEvent {
  /** Its place among the events of its task, from 1. */
  readonly seq: number
  readonly message: TaskProgressMessage | TaskCompleteMessage
  readonly isComplete: boolean
  /** The message as JSON, serialised when it is first read. */
  readonly frame: Buffer
  /** Frees the JSON once all subscribers have it. The log keeps the message, which shares its results with the task. */
  releaseFrame(): void
}

export interface EventLog {
  append(message: TaskProgressMessage | TaskCompleteMessage): TaskEvent
  /** The id of an event, for clients: its place, and which process published it. */
  idOf(seq: number): string
  /** The place of the event that a client has seen last; undefined for one that this process did not publish. */
  seqOf(taskId: string, id: string): number | undefined
  /** The place of the last event; 0 when there is none. */
  lastSeq(taskId: string): number
  /** The events after `seq`; undefined when they are not known. */
  after(taskId: string, seq: number): readonly TaskEvent[] | undefined
  dispose(): void
}

export interface EventLogOptions {
  readonly clock: Clock
  /** Whether a task is still known to clients: the events of one that is not cannot be requested. */
  readonly isKnown: (taskId: string) => boolean
  /** Whether events of a task may have been published in an earlier process. Default: none were. */
  readonly isContinued?: (taskId: string) => boolean
  /** Distinguishes the ids of this process from those of others that had the same tasks. */
  readonly life?: string
  /** How long the events of an ended task are kept at most, in ms. Default 300000. */
  readonly retentionMs?: number
}

const MAX_REPORTS = 1000
const MAX_ENDED_EVENTS = 50_000
/** The texts of the reports of one task, and of all ended tasks, in UTF-16 units. */
const MAX_REPORT_TEXT = 1024 * 1024
const MAX_ENDED_TEXT = 32 * 1024 * 1024

interface TaskLog {
  readonly events: TaskEvent[]
  last: number
  reports: number
  /** The length of the texts of the reports. */
  text: number
}

export function createEventLog(options: EventLogOptions): EventLog {
  const { clock, isKnown, isContinued = () => false, retentionMs = 300_000 } = options
  const prefix = options.life === undefined ? '' : `${options.life}-`
  const live = new Map<string, TaskLog>()
  const ended = new Map<string, TaskLog>()
  /** The keys of `ended` in order, from `oldest` on: the first entry of a map is slow to find after many deletions. */
  let order: ({ readonly taskId: string; readonly log: TaskLog; readonly endedAt: number } | undefined)[] = []
  let oldest = 0
  let endedEvents = 0
  let endedText = 0
  let sweep: unknown

  const find = (taskId: string): TaskLog | undefined => live.get(taskId) ?? ended.get(taskId)

  const removeOld = (): void => {
    const now = elapsedMs(clock)
    for (let first = order[oldest]; first !== undefined; first = order[(oldest += 1)]) {
      const { taskId, log, endedAt } = first
      const hasRoom = endedEvents <= MAX_ENDED_EVENTS && endedText <= MAX_ENDED_TEXT
      if (hasRoom && endedAt + retentionMs > now && isKnown(taskId)) break
      ended.delete(taskId)
      order[oldest] = undefined
      endedEvents -= log.events.length
      endedText -= log.text
    }
    if (oldest > order.length / 2) {
      order = order.slice(oldest)
      oldest = 0
    }
    if (ended.size === 0 || sweep !== undefined) return
    sweep = clock.setTimeout(() => {
      sweep = undefined
      removeOld()
    }, retentionMs)
    // The sweep must not keep the process alive.
    const timer = sweep as { unref?: () => void } | undefined
    timer?.unref?.()
  }

  return {
    append: (message) => {
      const { taskId } = message
      let log = live.get(taskId)
      if (log === undefined) live.set(taskId, (log = { events: [], last: 0, reports: 0, text: 0 }))
      const event = new LoggedEvent((log.last += 1), message)
      log.events.push(event)
      if (isReport(event)) {
        log.reports += 1
        log.text += textOf(event)
        while (log.reports > MAX_REPORTS || log.text > MAX_REPORT_TEXT) dropReport(log)
      }
      if (event.isComplete) {
        live.delete(taskId)
        ended.set(taskId, log)
        order.push({ taskId, log, endedAt: elapsedMs(clock) })
        endedEvents += log.events.length
        endedText += log.text
        removeOld()
      }
      return event
    },
    idOf: (seq) => `${prefix}${seq}`,
    seqOf: (taskId, id) => {
      // Before its first event, whoever publishes that.
      if (id === '0') return isContinued(taskId) ? undefined : 0
      const place = id.startsWith(prefix) ? id.slice(prefix.length) : ''
      return /^\d{1,15}$/.test(place) ? Number(place) : undefined
    },
    lastSeq: (taskId) => find(taskId)?.last ?? 0,
    after: (taskId, seq) => {
      const log = find(taskId)
      if (log === undefined) return seq === 0 ? [] : undefined
      return seq > log.last ? undefined : log.events.filter((event) => event.seq > seq)
    },
    dispose: () => {
      if (sweep !== undefined) clock.clearTimeout(sweep)
      live.clear()
      ended.clear()
      order = []
      oldest = 0
    },
  }
}

/** A progress report of a running command, as opposed to its start or its end. */
const isReport = ({ message }: TaskEvent): boolean => 'progress' in message

const textOf = ({ message }: TaskEvent): number =>
  'message' in message && message.message !== undefined ? message.message.length : 0

/** Drops the oldest report. */
function dropReport(log: TaskLog): void {
  const [dropped] = log.events.splice(log.events.findIndex(isReport), 1)
  if (dropped === undefined) return
  log.reports -= 1
  log.text -= textOf(dropped)
}

/** A class, because an object literal with a getter takes several times the memory, and many events are kept. */
export class LoggedEvent implements TaskEvent {
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
