/** Records a task that runs on this node: writes its events to Redis in order, while this node holds the lock of the job (promise N1). */
import type { Task, TaskCompleteMessage, TaskProgressMessage } from '../../protocol/command-tasks.js'
import { isReport, KeptReports } from '../../command-tasks/kept-reports.js'
import { resultBytes } from '../../command-tasks/task-bytes.js'
import { toJson } from '../../server/http/json.js'
import { eventWithInlineResults } from '../../server/backend/inline-results.js'
import type { TaskWrite } from './cluster-redis.js'
import { commandField, endFields, statusFields, type Fields } from './task-fields.js'

/** The maximum number of progress reports that wait to be written. Starts and ends of commands do not count. */
const MAX_WAITING_REPORTS = 100

export interface TaskRunOptions {
  readonly taskId: string
  /** The prefix of BullMQ's keys of the queue. */
  readonly queue: string
  readonly token: string
  readonly write: (write: TaskWrite) => Promise<'ok' | 'over' | 'stale'>
  /**
   * Called when this node has lost the task: another connection has it, it has ended, or Redis refused a write. Later events of this run are dropped.
   */
  readonly onLost: () => void
}

/** How the run ended: its end was written, or this node has lost the task. */
export type RunEnd = 'ended' | 'lost'

export class TaskRun {
  readonly taskId: string
  readonly queue: string
  readonly token: string
  /** Resolves when the end is written, or when this node has lost the task. */
  readonly settled: Promise<RunEnd>
  readonly #options: TaskRunOptions
  #settle: (end: RunEnd) => void = () => undefined
  #seq: number
  #fields: Record<string, string> = {}
  #events: { seq: number; json: string }[] = []
  #bytes = 0
  #isEnd = false
  #isWriting = false
  #isOver = false
  /** The reports that Redis keeps. When there are too many, the oldest are deleted with the next write. */
  readonly #reports = new KeptReports<{ readonly seq: number }>(({ seq }) => this.#dropped.push(seq))
  #dropped: number[] = []
  #waitingReports = 0

  /** @param seq the sequence number of the last event of the task */
  constructor(options: TaskRunOptions, seq: number) {
    const { taskId, queue, token } = options
    this.taskId = taskId
    this.queue = queue
    this.token = token
    this.#options = options
    this.#seq = seq
    this.settled = new Promise((resolve) => (this.#settle = resolve))
  }

  /** Writes that a command has started, reported progress or ended. */
  progress(message: TaskProgressMessage, task: Task | undefined): void {
    if (this.#isOver) return
    if (isReport(message)) {
      // When Redis is slow, reports are dropped. Starts and ends of commands are never dropped.
      if (this.#waitingReports >= MAX_WAITING_REPORTS) return
      this.#waitingReports += 1
      this.#reports.add({ seq: this.#seq + 1 }, message)
    } else if (task !== undefined) {
      this.#change({ ...statusFields(task), ...commandField(task, message.commandIndex) })
      if (message.result !== undefined) this.#bytes += resultBytes(message.result)
    }
    this.#append(message)
  }

  complete(message: TaskCompleteMessage, task: Task): void {
    if (this.#isOver) return
    this.#isEnd = true
    this.#change(endFields(task))
    this.#append(message)
  }

  /** Stops recording, because this node has lost the task. */
  lose(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#settle('lost')
    this.#options.onLost()
  }

  #change(fields: Fields): void {
    Object.assign(this.#fields, fields)
  }

  #append(message: TaskProgressMessage | TaskCompleteMessage): void {
    this.#events.push({ seq: (this.#seq += 1), json: toJson(eventWithInlineResults(message)) })
    if (!this.#isWriting) void this.#write()
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    // Waits for the end of the tick, so that all events of one change become one write.
    await Promise.resolve()
    while (this.#events.length > 0 && !this.#isOver) {
      const write: TaskWrite = {
        fields: this.#fields,
        events: this.#events,
        dropped: this.#dropped,
        isEnd: this.#isEnd,
        bytes: this.#bytes,
      }
      this.#fields = {}
      this.#events = []
      this.#dropped = []
      this.#bytes = 0
      this.#waitingReports = 0
      const answer = await this.#options.write(write).catch(() => 'stale' as const)
      if (answer !== 'ok') this.lose()
      else if (write.isEnd) {
        this.#isOver = true
        this.#settle('ended')
      }
    }
    this.#isWriting = false
  }
}
