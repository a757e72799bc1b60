/**
 * Limits the progress reports that are kept for a task: the last 1,000 reports, with at most 1 MiB of text. Starts and ends of commands are not
 * limited.
 */
import { Retention } from '../store/history/retention.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'

const MAX_REPORTS = 1000
/** The maximum length of all texts, in UTF-16 code units. */
const MAX_REPORT_TEXT = 1024 * 1024

export class KeptReports<Item extends object> {
  readonly #reports: Retention<Item>

  /** @param onDropped called with each report that is dropped */
  constructor(onDropped: (item: Item) => void) {
    this.#reports = new Retention({ maxCount: MAX_REPORTS, maxSize: MAX_REPORT_TEXT, onDropped })
  }

  /** The length of all texts, in UTF-16 code units. */
  get textLength(): number {
    return this.#reports.size
  }

  /**
   * Adds the latest report, and drops the oldest ones above the limits.
   * @param item the object that represents this report for the caller
   */
  add(item: Item, { message }: Report): void {
    this.#reports.add(item, message?.length ?? 0)
    this.#reports.trim()
  }
}

/** A progress report of a command, not its start or end. */
type Report = TaskProgressMessage & { readonly progress: number }

export function isReport(message: TaskProgressMessage | TaskCompleteMessage): message is Report {
  return 'progress' in message
}
