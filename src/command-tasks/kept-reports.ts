/** The progress reports of a task that are kept: the last 1,000, but at most 1 MiB of texts. Starts and ends of commands are always kept. */
import { Retention } from '../kernel/retention.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'

const MAX_REPORTS = 1000
/** In UTF-16 units. */
const MAX_REPORT_TEXT = 1024 * 1024

export class KeptReports<Item extends object> {
  readonly #reports: Retention<Item>

  /** @param onDropped called with a report that is dropped */
  constructor(onDropped: (item: Item) => void) {
    this.#reports = new Retention({ maxCount: MAX_REPORTS, maxSize: MAX_REPORT_TEXT, onDropped })
  }

  /** The length of all texts, in UTF-16 units. */
  get textLength(): number {
    return this.#reports.size
  }

  /** Keeps the latest report. @param item the caller's entry for it */
  add(item: Item, { message }: Report): void {
    this.#reports.add(item, message?.length ?? 0)
    this.#reports.trim()
  }
}

/** A progress report, in contrast to the start or end of a command. */
type Report = TaskProgressMessage & { readonly progress: number }

export function isReport(message: TaskProgressMessage | TaskCompleteMessage): message is Report {
  return 'progress' in message
}
