/**
 * Progress notifications of a call (MCP, "Progress"): the reports of its task, and a heartbeat while there are none. Many clients restart their time
 * limit at each notification.
 */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskProgress } from '../../machines/records.js'
import { elapsedMs, type Clock } from '../system/clock.js'
import { toOneLine } from '../data/control-characters.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { cutText, lastChars } from '../data/cut-text.js'
import type { OutputUpdate } from '../tools/tool.js'

/** The interval of heartbeats, in ms. The time limits of clients are 30 seconds and more. */
const INTERVAL_MS = 10_000

/** The minimum time between two notifications, in ms. */
const GAP_MS = 250

/** How long the output of a task is collected before it is sent, in ms. */
const GATHER_MS = 1000

/** The maximum number of characters of collected output, and of the line that is sent to the client. */
const KEPT_CHARS = 1000
const LINE_CHARS = 200

/** MCP requires a larger value in each notification. If a task reports a value that is not larger, this is added to the previous value. */
const STEP = 1e-6

export type ProgressParams = {
  readonly progressToken: string | number
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** Sends a notification. Must not throw. */
export type SendProgress = (params: ProgressParams) => void

export interface ProgressReport {
  /** Starts sending the reports of this task. */
  readonly follow: (taskId: string) => void
  /** Collects output of a task and schedules a notification with its last line; undefined if the client wants no notifications. */
  readonly onUpdate: ((update: OutputUpdate) => void) | undefined
  /** Sends all further notifications with another function, when the call was answered and its task goes on. The values go on increasing. */
  readonly sendWith: (send: SendProgress) => void
  stop(): void
}

/** Notifies a client of the progress of a call until `stop` is called. */
export function reportProgress(
  progressToken: string | number | undefined,
  { manager, clock }: { readonly manager: AsyncTaskManager; readonly clock: Clock },
  firstSend: SendProgress,
): ProgressReport {
  if (progressToken === undefined) return NO_REPORT
  const startedAt = elapsedMs(clock)
  let sentAt = -GAP_MS
  let send = firstSend
  let value = -Infinity
  let reported: TaskProgress | undefined
  let hasReported = false
  let written = ''
  let timer: unknown
  let following: { unsubscribe(): void } | undefined

  const notify = (): void => {
    const seconds = Math.round((elapsedMs(clock) - startedAt) / 1000)
    const line = lastLine(written)
    const {
      progress,
      total,
      message = line,
    } = reported ?? {
      // The value keeps the scale of the task's reports. If there were none, it is the time in seconds.
      progress: hasReported ? value : seconds,
      message: line ?? `Waiting for ${seconds} s.`,
    }
    reported = undefined
    written = ''
    value = progress > value ? progress : value + STEP
    sentAt = elapsedMs(clock)
    send({
      progressToken,
      progress: value,
      ...(total !== undefined && total >= value && { total }),
      ...omitUndefined({ message }),
    })
    wait(INTERVAL_MS)
  }
  const wait = (ms: number): void => {
    clock.clearTimeout(timer)
    timer = clock.setTimeout(notify, ms)
  }
  wait(INTERVAL_MS)
  return {
    follow: (taskId) => {
      following ??= manager.progress$.subscribe((event) => {
        if (event.taskId !== taskId) return
        const isFirst = reported === undefined
        reported = event.progress
        hasReported = true
        const early = sentAt + GAP_MS - elapsedMs(clock)
        if (early <= 0) notify()
        else if (isFirst) wait(early)
      })
    },
    onUpdate: ({ text }) => {
      const isFirst = lastLine(written) === undefined
      written = lastChars(written + lastChars(text, KEPT_CHARS), KEPT_CHARS)
      if (isFirst && lastLine(written) !== undefined && reported === undefined) wait(GATHER_MS)
    },
    sendWith: (next) => {
      send = next
    },
    stop: () => {
      clock.clearTimeout(timer)
      following?.unsubscribe()
    },
  }
}

const NO_REPORT: ProgressReport = {
  follow: () => undefined,
  onUpdate: undefined,
  sendWith: () => undefined,
  stop: () => undefined,
}

/** The last line of a text; undefined when the text is blank. */
function lastLine(text: string): string | undefined {
  const line = text.trimEnd().split('\n').at(-1) ?? ''
  return line === '' ? undefined : cutText(toOneLine(line).trim(), LINE_CHARS)
}
