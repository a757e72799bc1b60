/** An async task in the journal. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { LaunchedTask } from '../async-tasks/run-plan.js'
import { commandLine } from '../async-tasks/command-line.js'
import { jsonBytes } from '../protocol/json-size.js'
import { causeText } from './cause-text.js'
import type { JournalEntry } from './journal.js'
import { Allowance, type KeptValue } from './kept-values.js'
import { heldBytes, rowText } from './texts.js'
import type { PageTask, PageTaskState } from './wire.js'

/** What is kept of an ended task when its manager has forgotten it. */
export interface KeptEnd {
  readonly record: SettledTaskInfo
  readonly goal: KeptValue
  readonly output?: KeptValue
  readonly cause?: string
}

/** The input of a task whose input is larger is not kept, in bytes of JSON. */
const MAX_INPUT_BYTES = 256 * 1024

export class AsyncEntry implements JournalEntry {
  readonly kind = 'async'
  readonly key: string
  isEnded = false
  state: PageTaskState
  heldBytes = 0
  /** Has all of the record while the task is live, and what is kept of it afterwards. */
  record: AsyncTaskInfo
  kept: KeptEnd | undefined
  /** What it was launched with. */
  launched: LaunchedTask | undefined
  /** Why it cannot be run again, if that has a reason of its own. */
  whyNot: string | undefined
  /** The tasks that its run has launched. */
  readonly children: string[] = []
  readonly #title: string
  #hasStarted: boolean
  #inputBytes = 0

  constructor(record: AsyncTaskInfo, state: PageTaskState) {
    this.key = asyncKey(record.id)
    this.state = state
    this.record = record
    this.#hasStarted = record.status !== 'queued'
    const { kind, command, goalPrompt } = record
    this.#title = rowText(kind === 'command' && command !== undefined ? commandLine(command) : goalPrompt)
  }

  set(record: AsyncTaskInfo): void {
    if (record.status === 'running') this.#hasStarted = true
    this.record = this.kept === undefined ? record : slim(record)
  }

  /** What the task was launched with, unless that is too large to be kept. */
  setLaunched(launched: LaunchedTask | undefined): void {
    if (launched === undefined) return
    const bytes = jsonBytes(launched.input.params, MAX_INPUT_BYTES)
    if (bytes > MAX_INPUT_BYTES) {
      this.whyNot = `Its input is too large for the page to keep (more than ${MAX_INPUT_BYTES} bytes). Launch it again in the host.`
      return
    }
    this.launched = launched
    this.#inputBytes = bytes + heldBytes(launched.input.goalPrompt)
    this.heldBytes += this.#inputBytes
  }

  /** Keeps what the manager may forget. */
  keep(record: SettledTaskInfo, maxBytes: number): void {
    const room = new Allowance(maxBytes)
    const goal = room.keep(record.goalPrompt)
    const cause = record.status === 'failed' && record.cause !== undefined ? causeText(record.cause) : undefined
    const output = record.status === 'failed' ? record.lateOutput : record.output
    this.kept = {
      record: slim(record),
      goal,
      ...(output !== undefined && { output: room.keep(output) }),
      ...(cause !== undefined && { cause: room.keepText(cause) }),
    }
    this.record = this.kept.record
    this.heldBytes = this.#inputBytes + room.used
  }

  row(): Omit<PageTask, 'seq' | 'marks' | 'key' | 'kind' | 'state'> {
    const { id, owner, subagentName, launchedAt, startedAt, completedAt, attempt, progress, delivery } = this.record
    const { parentId, questions, error } = this.record
    return {
      id,
      title: this.#title,
      group: owner,
      subagent: rowText(subagentName),
      createdAt: launchedAt,
      ...(this.#hasStarted && { startedAt: startedAt ?? launchedAt }),
      ...(completedAt !== undefined && { endedAt: completedAt }),
      ...(parentId !== undefined && { parentKey: asyncKey(parentId) }),
      ...(attempt !== undefined && { attempt }),
      ...(progress !== undefined && { progress: shownProgress(progress) }),
      ...(delivery !== 'none' && { delivery }),
      ...(questions !== undefined && questions.length > 0 && { questions: questions.length }),
      ...(error !== undefined && { error: rowText(error) }),
    }
  }
}

/** The journal's entry of an async task is found by this. */
export const asyncKey = (id: string): string => `async:${id}`

const shownProgress = (progress: NonNullable<PageTask['progress']>): NonNullable<PageTask['progress']> =>
  progress.message === undefined ? progress : { ...progress, message: rowText(progress.message) }

/** The longest error and other text that a slim record has, in UTF-16 units. */
const SLIM_CHARS = 20_000

/** A record without what may be large. */
function slim(record: AsyncTaskInfo): SettledTaskInfo {
  const { abortController: _, goalPrompt, output: _output, error, ...fields } = record
  const { lateOutput: _late, ...rest } = fields as typeof fields & { lateOutput?: unknown }
  const short = (text: string): string => (text.length > SLIM_CHARS ? rowText(text) : text)
  return {
    ...rest,
    goalPrompt: short(goalPrompt),
    ...(error !== undefined && { error: short(error) }),
  } as SettledTaskInfo
}
