/** Moves tasks that a manager does not keep any longer into the history of its store, and reads pages of both. */
import { z } from 'zod'
import { TERMINAL_STATUSES, type TerminalStatus } from '../../machines/task-status.js'
import { InvalidInputError } from '../errors.js'
import { jsonBytes } from '../json/json-size.js'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { matches } from '../store/history/memory-history.js'
import {
  byEnd,
  type HistoryPlace,
  type PastTask,
  type PastTaskQuery,
  type TaskHistory,
} from '../store/history/task-history.js'

/** So many tasks, or so much of them in bytes of JSON (1 MiB), are added together: one transaction for each task costs five times as much. */
const BATCH = { tasks: 50, bytes: 1024 * 1024 } as const

/** What may wait while the history is written, in bytes of JSON (64 MiB). */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** A task on its way into the history. */
interface Addition {
  readonly task: PastTask
  readonly onAdded: () => void
}

export class PastTasks {
  readonly #history: TaskHistory | undefined
  readonly #report: (error: unknown) => void
  #waiting: Addition[] = []
  #waitingBytes = 0
  /** What is being written. */
  #adding: readonly Addition[] = []
  #writing: Promise<void> | undefined

  /** @param history undefined where there is none: a task that is not kept is gone */
  constructor(history?: TaskHistory, report: (error: unknown) => void = () => undefined) {
    this.#history = history
    this.#report = report
  }

  /** Whether there is a history. */
  get areKept(): boolean {
    return this.#history !== undefined
  }

  /** Writes what waits. Resolves when it is written; never rejects. */
  async flush(): Promise<void> {
    const history = this.#history
    if (history !== undefined && this.#waiting.length > 0) {
      this.#writing ??= Promise.resolve().then(() => this.#write(history))
    }
    await this.#writing
  }

  /**
   * Adds a task, with the next ones or when the history is read. What cannot be written, or has to wait with too much, is reported, and is not in the
   * history.
   * @param onAdded called when the history has the task, and at once where there is no history. It must not throw, and is kept until then
   */
  add(task: PastTask, onAdded: () => void): void {
    const history = this.#history
    if (history === undefined) {
      onAdded()
      return
    }
    const bytes = jsonBytes(task.record)
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#report(new Error(`Task ${task.id} is not in the history: too much waits to be written to it.`))
      return
    }
    this.#waiting.push({ task, onAdded })
    this.#waitingBytes += bytes
    if (this.#waiting.length >= BATCH.tasks || this.#waitingBytes >= BATCH.bytes) void this.flush()
  }

  async #write(history: TaskHistory): Promise<void> {
    while (this.#waiting.length > 0) {
      this.#adding = this.#waiting.splice(0)
      this.#waitingBytes = 0
      try {
        await history.add(this.#adding.map(({ task }) => task))
        for (const { onAdded } of this.#adding) onAdded()
      } catch (error) {
        this.#report(error)
      }
    }
    this.#adding = []
    this.#writing = undefined
  }

  /** The task of an id. @throws StoreError */
  async find(kind: PastTask['kind'], id: string): Promise<PastTask | undefined> {
    const added = [...this.#adding, ...this.#waiting].find(({ task }) => task.kind === kind && task.id === id)
    return added?.task ?? (await this.#history?.find(kind, id))
  }

  /**
   * A page of the tasks that have ended, the latest first.
   * @param kept those that the manager keeps
   * @throws StoreError; InvalidInputError for a cursor that no page has returned
   */
  async page(
    kept: readonly PastTask[],
    { cursor, ...wanted }: Omit<PastTaskQuery, 'before'> & { readonly cursor?: string | undefined },
  ): Promise<{ readonly tasks: readonly PastTask[]; readonly next?: string }> {
    const query: PastTaskQuery = {
      ...wanted,
      limit: wanted.limit + 1,
      ...(cursor !== undefined && { before: placeOf(cursor, 'query.before') }),
    }
    await this.flush()
    const past = (await this.#history?.query(query)) ?? []
    const found = withKept(past, kept, query)
    const tasks = found.slice(0, wanted.limit)
    const last = tasks.at(-1)
    return { tasks, ...(found.length > tasks.length && last && { next: placeText(last) }) }
  }
}

/** What was found in a history, with the tasks that match of those that are still kept, each once. */
export function withKept(past: readonly PastTask[], kept: readonly PastTask[], query: PastTaskQuery): PastTask[] {
  const isKept = new Set(kept.filter(({ kind }) => kind === query.kind).map(({ id }) => id))
  return [...kept.filter(matches(query)), ...past.filter(({ id }) => !isKept.has(id))].sort(byEnd)
}

/** A place as text. */
export const placeText = ({ completedAt, id }: HistoryPlace): string => `${completedAt}:${id}`

/** The place of a text. @throws InvalidInputError, which calls it `field` */
export function placeOf(cursor: string, field: string): HistoryPlace {
  const [, completedAt, id] = /^(\d+(?:\.\d+)?):([^]*)$/.exec(cursor) ?? []
  if (completedAt === undefined || id === undefined) {
    throw new InvalidInputError(field, cursor, 'the place that an earlier page has returned')
  }
  return { completedAt: Number(completedAt), id }
}

const shape = {
  status: z.enum(TERMINAL_STATUSES).optional(),
  text: z.string().max(1000).optional(),
  before: z.string().max(2000).optional(),
  limit: z.number().int().min(1).max(1000).default(50),
}

const taskQuerySchema = lazily(() =>
  strictObject({ owner: z.string().optional(), subagent: z.string().optional(), ...shape }),
)
const commandTaskQuerySchema = lazily(() =>
  strictObject({ instanceId: z.string().optional(), name: z.string().optional(), ...shape }),
)

/** What every search of a history may have. */
interface HistoryQuery {
  /** How the tasks ended: `completed`, `failed` or `cancelled`. */
  readonly status?: TerminalStatus
  /**
   * Words of the goal, the name, the result or the error, in any order and case. A word of three characters and more also stands for those that begin with
   * it. At most 1000 characters.
   */
  readonly text?: string
  /** `next` of the page before. */
  readonly before?: string
  /** The most tasks to return, from 1 to 1000. Default 50. */
  readonly limit?: number
}

/** Which background tasks of the history are wanted. */
export interface TaskHistoryQuery extends HistoryQuery {
  /** The owner of the tasks. */
  readonly owner?: string
  /** The name of their subagent. */
  readonly subagent?: string
}

/** Which command tasks of the history are wanted. */
export interface CommandTaskHistoryQuery extends HistoryQuery {
  /** The instance on which they ran. */
  readonly instanceId?: string
  /** Their name. */
  readonly name?: string
}

/** A page of the history. */
export interface HistoryPage<Record> {
  /** The tasks, the latest first. */
  readonly tasks: readonly Record[]
  /** `before` of the next page; undefined on the last one. */
  readonly next?: string
}

/** @throws InvalidInputError */
export function readTaskQuery(query: TaskHistoryQuery) {
  const { subagent, before, ...fields } = parseInput(taskQuerySchema(), query, 'query')
  return { kind: 'task' as const, ...fields, ...(subagent !== undefined && { name: subagent }), cursor: before }
}

/** @throws InvalidInputError */
export function readCommandTaskQuery(query: CommandTaskHistoryQuery) {
  const { instanceId, before, ...fields } = parseInput(commandTaskQuerySchema(), query, 'query')
  return {
    kind: 'command task' as const,
    ...fields,
    ...(instanceId !== undefined && { owner: instanceId }),
    cursor: before,
  }
}
