/** Adds tasks that a manager no longer keeps to the history of its store. Reads pages of the history and of the kept tasks together. */
import { z } from 'zod'
import { TERMINAL_STATUSES, type TerminalStatus } from '../../../machines/task-status.js'
import { InvalidInputError } from '../../errors.js'
import { jsonBytes } from '../../data/json-size.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import { strictObject } from '../../protocol/strict-object.js'
import { matches } from './memory-history.js'
import { byEnd, type HistoryPlace, type PastTask, type PastTaskQuery, type TaskHistory } from './task-history.js'

/**
 * When waiting tasks reach one of these limits (number, bytes of JSON), they are written in one transaction. A transaction for each task takes five
 * times as long.
 */
const BATCH = { tasks: 50, bytes: 1024 * 1024 } as const

/** The maximum size of the tasks that wait for the history, in bytes of JSON. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

interface Addition {
  readonly task: PastTask
  readonly onAdded: () => void
}

export class PastTasks {
  readonly #history: TaskHistory | undefined
  readonly #report: (error: unknown) => void
  #waiting: Addition[] = []
  #waitingBytes = 0
  #adding: readonly Addition[] = []
  #writing: Promise<void> | undefined

  /** @param history undefined without a history; tasks that the manager no longer keeps are then lost */
  constructor(history?: TaskHistory, report: (error: unknown) => void = () => undefined) {
    this.#history = history
    this.#report = report
  }

  get areKept(): boolean {
    return this.#history !== undefined
  }

  /** Writes the waiting tasks. Resolves when they are written. Never rejects. */
  async flush(): Promise<void> {
    const history = this.#history
    if (history !== undefined && this.#waiting.length > 0) {
      this.#writing ??= Promise.resolve().then(() => this.#write(history))
    }
    await this.#writing
  }

  /**
   * Adds a task to the next batch. The batch is written when it is large enough, or when the history is read. If the task cannot be written, or too
   * much is waiting already, the task is reported and lost.
   * @param onAdded called when the history contains the task, or at once without a history. Must not throw
   */
  add(task: PastTask, onAdded: () => void): void {
    const history = this.#history
    if (history === undefined) {
      onAdded()
      return
    }
    const bytes = jsonBytes(task.record)
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#report(
        new Error(
          `Task ${task.id} was not added to the history, because the tasks that wait to be written would exceed ${MAX_WAITING_BYTES} bytes.`,
        ),
      )
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

  /** @throws StoreError if the history cannot be read */
  async find(kind: PastTask['kind'], id: string): Promise<PastTask | undefined> {
    const added = [...this.#adding, ...this.#waiting].find(({ task }) => task.kind === kind && task.id === id)
    return added?.task ?? (await this.#history?.find(kind, id))
  }

  /**
   * Returns a page of ended tasks, newest first.
   * @param kept the tasks that the manager keeps
   * @throws StoreError if the history cannot be read
   * @throws INVALID_INPUT for a cursor that no page has returned
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

/** Merges tasks of the history with the kept tasks that match the query. A kept task takes the place of a task of the history with the same id. */
export function withKept(past: readonly PastTask[], kept: readonly PastTask[], query: PastTaskQuery): PastTask[] {
  const isKept = new Set(kept.filter(({ kind }) => kind === query.kind).map(({ id }) => id))
  return [...kept.filter(matches(query)), ...past.filter(({ id }) => !isKept.has(id))].sort(byEnd)
}

export const placeText = ({ completedAt, id }: HistoryPlace): string => `${completedAt}:${id}`

/**
 * Decodes a cursor.
 * @throws INVALID_INPUT for a text that is not a cursor; `field` is its name in the error
 */
export function placeOf(cursor: string, field: string): HistoryPlace {
  const [, completedAt, id] = /^(\d+(?:\.\d+)?):([^]*)$/.exec(cursor) ?? []
  if (completedAt === undefined || id === undefined) {
    throw new InvalidInputError(field, cursor, '`next` of an earlier page')
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

/** Fields that every history search accepts. */
interface HistoryQuery {
  /** Only tasks that have ended with this status. */
  readonly status?: TerminalStatus
  /**
   * Words to find in the goal, name, result or error, in any order and in upper or lower case. A word of at least three characters also matches longer
   * words that begin with it. At most 1000 characters.
   */
  readonly text?: string
  /** The `next` of the page before. Default: the newest tasks. */
  readonly before?: string
  /** The maximum number of tasks to return, from 1 to 1000. Default 50. */
  readonly limit?: number
}

/** Selects background tasks of the history. */
export interface TaskHistoryQuery extends HistoryQuery {
  /** Only tasks of this owner. */
  readonly owner?: string
  /** Only tasks of this subagent. */
  readonly subagent?: string
}

/** Selects command tasks of the history. */
export interface CommandTaskHistoryQuery extends HistoryQuery {
  /** Only tasks that ran on this instance. */
  readonly instanceId?: string
  /** Only tasks with this name. */
  readonly name?: string
}

/** A page of the history. */
export interface HistoryPage<Record> {
  /** The tasks, newest first. */
  readonly tasks: readonly Record[]
  /** Pass it as `before` to get the next page. Absent on the last page. */
  readonly next?: string
}

/** @throws INVALID_INPUT for an invalid query */
export function readTaskQuery(query: TaskHistoryQuery) {
  const { subagent, before, ...fields } = parseInput(taskQuerySchema(), query, 'query')
  return { kind: 'task' as const, ...fields, ...(subagent !== undefined && { name: subagent }), cursor: before }
}

/** @throws INVALID_INPUT for an invalid query */
export function readCommandTaskQuery(query: CommandTaskHistoryQuery) {
  const { instanceId, before, ...fields } = parseInput(commandTaskQuerySchema(), query, 'query')
  return {
    kind: 'command task' as const,
    ...fields,
    ...(instanceId !== undefined && { owner: instanceId }),
    cursor: before,
  }
}
