/** An async task in the page's journal. */
import { endedAs, holdsSlot, isWaiting } from '../../machines/task-status.js'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { commandLine } from '../async-tasks/command-line.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { TraceContext } from '../protocol/telemetry.js'
import { cutText } from '../data/cut-text.js'
import { causeText } from './cause-text.js'
import { shownWords } from './command-words.js'
import type { JournalEntry } from './journal.js'
import { Allowance, type KeptValue } from './kept-values.js'
import type { FurtherInput } from './launched-input.js'
import { heldBytes, ownText, rowText, sentText } from './texts.js'
import type { PageTask, PageTaskState } from './wire.js'

/** The values of an ended task. The journal has its own copy of them, because the AsyncTaskManager removes ended tasks. */
export interface KeptEnd {
  readonly goal: KeptValue
  /** The launch input other than the goal, as JSON. */
  readonly launch?: KeptValue
  readonly trace?: TraceContext
  readonly output?: KeptValue
  readonly error?: KeptValue
  readonly cause?: KeptValue
}

/** The maximum length of `children` and of `neededBy`. */
const MAX_LISTED = 200

const MAX_ERROR_BYTES = 40_000

/** The maximum length of each other text of a record, such as an error code, in UTF-16 units. */
const FACT_CHARS = 20_000

export class AsyncEntry implements JournalEntry {
  readonly kind = 'async'
  readonly key: string
  isEnded = false
  state: PageTaskState
  heldBytes: number
  /** The AsyncTaskManager's record until the task ends. After that, a copy in which large values are cut or absent. */
  record: AsyncTaskInfo
  kept: KeptEnd | undefined
  /** How long the program of the ended task may take to end, in ms, while it is being stopped. */
  stopsWithinMs: number | undefined
  /** The keys of the first 200 tasks that runs of this task have launched. */
  readonly children: string[] = []
  /** The keys of the first 200 tasks that had to wait for this task to end. */
  readonly neededBy: string[] = []
  readonly #title: string
  #hasStarted: boolean

  constructor(record: AsyncTaskInfo, state: PageTaskState) {
    this.key = asyncKey(record.id)
    this.state = state
    this.record = record
    this.#hasStarted = !isWaiting(record.status)
    const { kind, command, goalPrompt } = record
    this.#title = rowText(kind === 'command' && command !== undefined ? commandLine(shownWords(command)) : goalPrompt)
    this.heldBytes = heldBytes(this.key) + heldBytes(this.#title)
  }

  set(record: AsyncTaskInfo): void {
    if (holdsSlot(record.status)) this.#hasStarted = true
    this.record =
      this.kept === undefined ? record : ({ ...this.record, ...deliveryOf(record, this.record.owner) } as AsyncTaskInfo)
  }

  addChild(key: string): void {
    this.#list(this.children, key)
  }

  addNeededBy(key: string): void {
    this.#list(this.neededBy, key)
  }

  #list(keys: string[], key: string): void {
    if (keys.length >= MAX_LISTED) return
    keys.push(key)
    this.heldBytes += heldBytes(key)
  }

  /** Copies the values of the ended task. */
  keep(record: SettledTaskInfo, maxBytes: number, further: FurtherInput = {}, trace?: TraceContext): void {
    const { error } = record
    const facts = factsOf(record)
    // An object takes at most twice as much memory as its JSON.
    this.heldBytes += 2 * heldBytes(facts)
    const room = new Allowance(Math.max(0, maxBytes - this.heldBytes))
    const output = endedAs(record, 'failed') ? record.lateOutput : record.output
    const kept = {
      ...(trace !== undefined && { trace: { traceparent: ownText(trace.traceparent) } }),
      ...(error !== undefined && { error: room.keep(error, MAX_ERROR_BYTES) }),
      // The goal may use at most a quarter of the size, so that the result has room.
      goal: room.keep(record.goalPrompt, maxBytes / 4),
      ...(Object.keys(further).length > 0 && { launch: room.keepJson(further, maxBytes / 4) }),
      ...(output !== undefined && { output: room.keep(output) }),
      ...(endedAs(record, 'failed') && record.cause !== undefined && { cause: room.keep(causeText(record.cause)) }),
    }
    this.kept = kept
    this.record = {
      ...(JSON.parse(facts) as SettledTaskInfo),
      goalPrompt: kept.goal.text,
      ...(kept.error !== undefined && { error: kept.error.text }),
    } as SettledTaskInfo
    this.heldBytes += room.used
  }

  row(): Omit<PageTask, 'seq' | 'marks' | 'key' | 'kind' | 'state'> {
    const { id, owner, subagentName, launchedAt, startedAt, completedAt, attempt, progress, delivery } = this.record
    const { parentId, questions, error } = this.record
    return {
      id,
      title: this.#title,
      group: owner,
      subagent: sentText(subagentName),
      createdAt: launchedAt,
      ...(this.#hasStarted && { startedAt: startedAt ?? launchedAt }),
      ...omitUndefined({ endedAt: completedAt }),
      ...(parentId !== undefined && { parentKey: asyncKey(parentId) }),
      ...omitUndefined({ attempt }),
      ...(progress !== undefined && { progress: shownProgress(progress) }),
      ...(delivery !== 'none' && { delivery }),
      ...(questions !== undefined && questions.length > 0 && { questions: questions.length }),
      ...(error !== undefined && { error: sentText(error) }),
      ...omitUndefined({ stopsWithinMs: this.stopsWithinMs }),
    }
  }
}

export const asyncKey = (id: string): string => `async:${id}`

const shownProgress = (progress: NonNullable<PageTask['progress']>): NonNullable<PageTask['progress']> =>
  progress.message === undefined ? progress : { ...progress, message: sentText(progress.message) }

/** The fields of a record that still change after the task has ended. */
const deliveryOf = (
  { owner, delivery, notifiedAt, isRepeat }: AsyncTaskInfo,
  known: string,
): Partial<AsyncTaskInfo> => ({
  owner: owner === known ? known : ownText(owner),
  delivery,
  ...omitUndefined({ notifiedAt, isRepeat }),
})

/** Returns a record as JSON, without its goal, output and error, which may be large. */
function factsOf(record: SettledTaskInfo): string {
  const {
    goalPrompt: _goal,
    output: _output,
    error: _error,
    runningChildren: _children,
    ...rest
  } = record as SettledTaskInfo & { readonly runningChildren?: readonly string[] }
  const { lateOutput: _late, command, ...facts } = rest as typeof rest & { readonly lateOutput?: unknown }
  return JSON.stringify(
    { ...facts, ...(command !== undefined && { command: shownWords(command) }) },
    (_key, value: unknown) => (typeof value === 'string' ? cutText(value, FACT_CHARS) : value),
  )
}
