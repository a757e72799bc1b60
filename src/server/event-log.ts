/**
 * The events of each task for a while, so that an event stream that broke off can go on where it was.
 *
 * It is bounded: a live task keeps the last thousand of its progress reports (every start and end of a command is kept), an ended one its
 * events for five minutes, and all ended ones together 50,000.
 */
import type { Clock } from '../clock.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { toJson } from './json.js'

/** One event as it is told. */
export interface TaskEvent {
  /** Its place among the events of its task, from 1. */
  readonly seq: number
  readonly message: TaskProgressMessage | TaskCompleteMessage
  readonly isComplete: boolean
  /** The message as JSON; written once, however many are told at once. */
  readonly frame: Buffer
  /** Lets the frame go when everyone has been told: what is kept is the message, which shares its results with the task. */
  release(): void
}

export interface EventLog {
  append(message: TaskProgressMessage | TaskCompleteMessage): TaskEvent
  /** The place of the last event; 0 before the first. */
  lastSeq(taskId: string): number
  /** What came after `seq`; undefined when that is not known (any more). */
  after(taskId: string, seq: number): readonly TaskEvent[] | undefined
  dispose(): void
}

const MAX_REPORTS = 1000
const MAX_ENDED_EVENTS = 50_000
const KEPT_MS = 300_000

interface TaskLog {
  readonly events: TaskEvent[]
  last: number
  reports: number
}

export function createEventLog(clock: Clock, keptMs: number = KEPT_MS): EventLog {
  const live = new Map<string, TaskLog>()
  const ended = new Map<string, TaskLog>()
  /** The same in the order of their ends, from `oldest` on: a map is slow to find its first entry when many were deleted. */
  let order: ({ readonly taskId: string; readonly log: TaskLog; readonly endedAt: number } | undefined)[] = []
  let oldest = 0
  let endedEvents = 0
  let sweep: unknown

  const find = (taskId: string): TaskLog | undefined => live.get(taskId) ?? ended.get(taskId)

  const forgetOld = (): void => {
    const now = clock.now()
    for (let first = order[oldest]; first !== undefined; first = order[(oldest += 1)]) {
      const { taskId, log, endedAt } = first
      if (endedEvents <= MAX_ENDED_EVENTS && endedAt + keptMs > now) break
      ended.delete(taskId)
      order[oldest] = undefined
      endedEvents -= log.events.length
    }
    if (oldest > order.length / 2) {
      order = order.slice(oldest)
      oldest = 0
    }
    if (ended.size === 0 || sweep !== undefined) return
    sweep = clock.setTimeout(() => {
      sweep = undefined
      forgetOld()
    }, keptMs)
    // Forgetting keeps no process alive.
    const timer = sweep as { unref?: () => void } | undefined
    timer?.unref?.()
  }

  return {
    append: (message) => {
      const { taskId } = message
      let log = live.get(taskId)
      if (log === undefined) live.set(taskId, (log = { events: [], last: 0, reports: 0 }))
      const event = new LoggedEvent((log.last += 1), message)
      log.events.push(event)
      if (isReport(event) && (log.reports += 1) > MAX_REPORTS) {
        log.events.splice(log.events.findIndex(isReport), 1)
        log.reports -= 1
      }
      if (event.isComplete) {
        live.delete(taskId)
        ended.set(taskId, log)
        order.push({ taskId, log, endedAt: clock.now() })
        endedEvents += log.events.length
        forgetOld()
      }
      return event
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

/** A report from inside a running command, as opposed to its start or its end. */
const isReport = ({ message }: TaskEvent): boolean => 'progress' in message

/** A class: an object with a getter of its own takes several times the memory, and many of these are kept. */
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
    return (this.#frame ??= Buffer.from(toJson(this.message)))
  }

  release(): void {
    this.#frame = undefined
  }
}
