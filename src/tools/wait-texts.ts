/** The text of the result of a wait: the results that it delivers, and the tasks that still run, within the limit of a whole message. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { boundLines, maxWholeChars, previewText } from '../features/output/bounded-text.js'
import { shortTaskIds } from '../features/task-ids/task-lookup.js'
import { wordEnds, type WordedEnds } from './shown-texts.js'
import { answerHints } from './task-answer.js'
import { isKept } from './task-runs.js'
import { durationOf, goalOf, type TaskView } from './task-view.js'

/** The maximum length of each list of tasks that have not ended, in characters. A single line may be longer. */
const LIST_CHARS = 2000

/** The maximum length of one line of such a list, in characters. */
const LINE_CHARS = 1000

/** The maximum length of the ids of ended tasks whose results do not fit, in characters. A single id may be longer. */
const IDS_CHARS = 500

export class WaitText {
  readonly #view: TaskView
  readonly #name: string
  #ends: WordedEnds = { shown: [], texts: [] }
  #leftOut: readonly SettledTaskInfo[] = []
  #rest: readonly string[] = []

  /** @param name the name of the tool */
  constructor(view: TaskView, name: string) {
    this.#view = view
    this.#name = name
  }

  /**
   * Writes the results. Call it before the results are acknowledged.
   * @param notes about the call itself
   * @returns the tasks whose results are in the text
   */
  word(
    settled: readonly SettledTaskInfo[],
    pending: readonly AsyncTaskInfo[],
    notes: readonly string[],
  ): readonly SettledTaskInfo[] {
    const { maxChars, manager, followUps } = this.#view
    this.#rest = [...this.#askingParts(pending), ...this.#pendingParts(pending), ...boundParts(notes)]
    // The text also needs room for the longest header, and for the ids of tasks whose results do not fit.
    const others = this.#rest.join('\n\n').length + IDS_CHARS + LINE_CHARS
    const room = maxWholeChars(maxChars) - others
    this.#ends = wordEnds(manager, settled, { maxChars, room, readWith: followUps.read, keepsEmpty: false })
    const { shown } = this.#ends
    this.#leftOut = settled.filter((task) => !shown.includes(task))
    return shown
  }

  get shown(): readonly SettledTaskInfo[] {
    return this.#ends.shown
  }

  toString(header: string): string {
    return [header, ...this.#ends.texts, ...this.#leftOutParts(), ...this.#rest].join('\n\n')
  }

  #leftOutParts(): string[] {
    if (this.#leftOut.length === 0) return []
    const shortOf = shortTaskIds(this.#view.manager)
    const ids: string[] = []
    for (const task of this.#leftOut) {
      ids.push(shortOf(task))
      if (JSON.stringify(ids).length > IDS_CHARS) break
    }
    const call = `${this.#name} ${JSON.stringify({ task_ids: ids })}`
    return [`${this.#leftOut.length} more ended, but their results do not fit here. Get the next ones with ${call}`]
  }

  #askingParts(pending: readonly AsyncTaskInfo[]): string[] {
    const hints = pending.flatMap((task) => answerHints(task, this.#view.followUps))
    return hints.length === 0 ? [] : [boundLines(hints, LIST_CHARS, () => ': see check_async_tasks')]
  }

  #pendingParts(pending: readonly AsyncTaskInfo[]): string[] {
    if (pending.length === 0) return []
    const shortOf = shortTaskIds(this.#view.manager)
    const lines = pending.map(
      (task) => `- [${shortOf(task)}] ${task.subagentName} (${durationOf(this.#view, task)}) - ${goalOf(task)}`,
    )
    const shown = boundLines(lines, Math.min(LIST_CHARS, this.#view.maxChars), () => ': see check_async_tasks')
    const list = `${pending.length} async task(s) still running:\n${shown}`
    // When the host is closing, every wait would end at once.
    if (isKept(this.#view.manager)) return [list]
    return [list, `Wait again with ${this.#name}, look at one with check_async_tasks, or continue with other work.`]
  }
}

/** The first of these paragraphs that fit. Each paragraph is shortened. */
export function boundParts(parts: readonly string[]): string[] {
  const lines = parts.map((part) => previewText(part, LINE_CHARS))
  let length = 0
  const fitting = lines.filter((line) => (length += line.length) <= LIST_CHARS)
  return fitting.length === lines.length ? lines : [...fitting, `... and ${lines.length - fitting.length} more`]
}
