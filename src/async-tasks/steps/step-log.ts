/**
 * The steps of one task: which have begun, and how they have ended. All runs of the task share them.
 *
 * Each step is a row of its own, written when it begins and when it ends.
 */
import { z } from 'zod'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import type { TaskQuestion } from '../../../machines/records.js'
import type { StoredJson } from '../../store/store.js'
import { preview } from '../../text/preview.js'
import { isStepFailure, toStepFailure } from './step-failure.js'

/** The limits of a task: the number of steps, the JSON of all results and of one result, in bytes. */
const MAX = { steps: 1000, bytes: 64 * 1024 * 1024, resultBytes: 1024 * 1024 } as const

/** The limits of waiting events: their number, and the JSON of their values in bytes. */
export const MAX_EVENTS = { count: 100, bytes: 256 * 1024 } as const

const stepSchema = lazily(() =>
  z.object({
    taskId: z.string(),
    /** The name, with a number if it is used more than once. */
    key: z.string(),
    /** `sleep`, `event` and `question` wait for something outside of the run. */
    kind: z.enum(['work', 'sleep', 'event', 'question', 'launch', 'children']),
    /** The positions of its beginning and end among those of all steps of the task. */
    beganAt: z.int().positive(),
    endedAt: z.int().positive().optional(),
    /** Whether another step was open at the same time, so that their order is irrelevant. */
    overlaps: z.boolean(),
    /** How long the runs of the task had worked when it was written, in ms. */
    activeMs: z.number().min(0),
    /** The JSON text of its result. Absent for undefined. */
    result: z.string().refine(isJson).optional(),
    /** The JSON text of its failure. */
    failure: z.string().refine(isStepFailure).optional(),
    /** When a wait is over, in ms since the epoch, and its full length. */
    dueAt: z.number().optional(),
    forMs: z.number().optional(),
    /** Set when the run that waited has failed, until the next run requests this step. */
    isLeft: z.literal(true).optional(),
    /** What a wait is for: an event, or the answer to a question. */
    event: z.string().optional(),
    questionId: z.string().optional(),
  }),
)
export type Step = z.output<ReturnType<typeof stepSchema>>

const eventSchema = lazily(() =>
  z.object({ taskId: z.string(), number: z.int(), event: z.string(), value: z.string().refine(isJson) }),
)
/** An event that no run has taken yet. `value` is JSON. */
export type KeptEvent = z.output<ReturnType<typeof eventSchema>>

export type StepEnd = Pick<Step, 'result' | 'failure'>

export type NewStep = Pick<Step, 'key' | 'kind'> & Partial<Pick<Step, 'dueAt' | 'forMs' | 'event'>>

export interface StepRows {
  readonly keep: (id: string, data: StoredJson) => void
  readonly drop: (id: string) => void
}

/** Includes the length of the id, because ids and keys may contain slashes. */
const stepId = ({ taskId, key }: Step): string => `step/${taskId.length}/${taskId}/${key}`
const eventId = ({ taskId, number }: KeptEvent): string => `event/${taskId.length}/${taskId}/${number}`

const NO_ROWS: StepRows = { keep: () => undefined, drop: () => undefined }

export class StepLog {
  readonly #taskId: string
  /** In the order in which they first began. */
  readonly #steps = new Map<string, Step>()
  /** Their keys in the same order. */
  #keys: string[] = []
  #events: KeptEvent[] = []
  #rows = NO_ROWS
  #activeMs = (): number => 0
  #changes = 0
  #bytes = 0

  constructor(taskId: string) {
    this.#taskId = taskId
  }

  /** Stores additions and changes from now on. */
  store(rows: StepRows, activeMs: () => number): void {
    this.#rows = rows
    this.#activeMs = activeMs
  }

  /** Reads a row of an earlier process. Returns false if it is malformed. */
  read(row: StoredJson): boolean {
    const step = stepSchema().safeParse(row)
    const event = eventSchema().safeParse(row)
    if (step.success) this.#steps.set(step.data.key, step.data)
    else if (event.success) this.#events.push(event.data)
    return step.success || event.success
  }

  /** Sorts the steps after all rows were read. */
  order(): void {
    const steps = [...this.#steps.values()].sort((a, b) => a.beganAt - b.beganAt)
    this.#steps.clear()
    for (const step of steps) this.#steps.set(step.key, step)
    this.#keys = [...this.#steps.keys()]
    this.#changes = this.progress
    this.#bytes = steps.reduce((sum, step) => sum + sizeOf(step), 0)
    this.#events.sort((a, b) => a.number - b.number)
  }

  /** Increases when a new step begins and when a step ends. */
  get progress(): number {
    return this.list().reduce((latest, { beganAt, endedAt = 0 }) => Math.max(latest, beganAt, endedAt), 0)
  }

  /** How long the runs of the task had worked at the last change, in ms. */
  get activeMs(): number {
    return this.list().reduce((most, { activeMs }) => Math.max(most, activeMs), 0)
  }

  list(): Step[] {
    return [...this.#steps.values()]
  }

  /**
   * Returns the steps that a run waits for, if all of its open steps wait; otherwise none.
   * @param questions the open questions
   */
  waits(questions: readonly TaskQuestion[] = []): Step[] {
    const open = this.list().filter(({ endedAt }) => endedAt === undefined)
    const isWait = ({ kind, questionId, isLeft }: Step): boolean =>
      isLeft !== true &&
      (kind === 'question' ? questions.some(({ id }) => id === questionId) : kind === 'sleep' || kind === 'event')
    return open.every(isWait) ? open : []
  }

  /** Returns the step that waits for the answer to a question. */
  asking(questionId: string): Step | undefined {
    return this.list().find((step) => step.questionId === questionId && step.endedAt === undefined)
  }

  get asked(): number {
    return this.list().reduce(
      (most, { questionId }) => Math.max(most, Number(/\d+$/.exec(questionId ?? '')?.[0] ?? 0)),
      0,
    )
  }

  setQuestion(key: string, questionId: string): void {
    const step = this.#steps.get(key)
    if (step !== undefined) this.#put({ ...step, questionId })
  }

  /** Returns the step at a position in the order of beginnings; undefined after the last one. */
  at(place: number): Step | undefined {
    return this.#steps.get(this.#keys[place] ?? '')
  }

  /** Whether the last change was the beginning of an open step, so that no later end could have let the run continue. */
  get endsOpen(): boolean {
    const last = this.progress
    return this.list().some(({ beganAt, endedAt }) => endedAt === undefined && beganAt === last)
  }

  get(key: string): Step | undefined {
    return this.#steps.get(key)
  }

  /** @throws AgentTasksError `STEP_LIMIT` */
  begin(step: NewStep, overlaps: boolean): Step {
    const present = this.#steps.get(step.key)
    if (present !== undefined) {
      if (present.kind !== step.kind) throw stepsChanged(present, step)
      const { isLeft, ...asked } = present
      if (isLeft === true) this.#put(asked)
      return asked
    }
    if (this.#steps.size >= MAX.steps) {
      throw new AgentTasksError(
        'STEP_LIMIT',
        `Task ${preview(this.#taskId)} has ${MAX.steps} steps, the most that it may have.`,
      )
    }
    const begun = { ...step, taskId: this.#taskId, beganAt: (this.#changes += 1), overlaps, activeMs: this.#activeMs() }
    this.#put(begun)
    this.#keys.push(begun.key)
    return begun
  }

  /** Notes that another step has begun while this one is open. */
  setOverlaps(key: string): void {
    const step = this.#steps.get(key)
    if (step !== undefined && !step.overlaps) this.#put({ ...step, overlaps: true })
  }

  /** Ends an open step. If the result is too large, the step fails (`STEP_LIMIT`). */
  end(key: string, end: StepEnd): void {
    const step = this.#steps.get(key)
    if (step === undefined || step.endedAt !== undefined) return
    const excess = this.excessOf(end)
    const given = excess === undefined ? end : { failure: toStepFailure(tooLarge(key, excess)) }
    this.#changes += 1
    this.#bytes += sizeOf(given)
    this.#put({ ...step, ...given, endedAt: this.#changes, activeMs: this.#activeMs() })
  }

  /** Describes by how much the end of a step is too large; undefined if it fits. */
  excessOf(end: StepEnd): string | undefined {
    const bytes = sizeOf(end)
    if (bytes > MAX.resultBytes) return `${bytes} bytes of JSON, and a result may have ${MAX.resultBytes}`
    if (this.#bytes + bytes <= MAX.bytes) return undefined
    return `${bytes} bytes of JSON, and all steps of its task would have more than ${MAX.bytes}`
  }

  /**
   * Prepares for another run.
   * @param keepsFailures whether the next run receives stored failures
   */
  leave(keepsFailures: boolean): void {
    for (const step of this.list()) {
      const { failure, endedAt, ...open } = step
      if (endedAt === undefined) this.#put({ ...step, isLeft: true })
      if (failure === undefined || keepsFailures) continue
      this.#bytes -= byteLength(failure)
      this.#put(open)
    }
  }

  /**
   * @param isTaken whether a step waits for the event, so that it is not stored
   * @throws AgentTasksError `EVENTS_FULL`
   */
  checkRoom(bytes: number, isTaken: boolean): void {
    const kept = this.#events.reduce((sum, { value }) => sum + byteLength(value), 0)
    const others = isTaken ? { count: 0, bytes: 0 } : { count: this.#events.length, bytes: kept }
    if (others.count < MAX_EVENTS.count && others.bytes + bytes <= MAX_EVENTS.bytes) return
    throw new AgentTasksError(
      'EVENTS_FULL',
      `Task ${preview(this.#taskId)} has not taken ${this.#events.length} events (${kept} bytes): it keeps at most ${MAX_EVENTS.count} (${MAX_EVENTS.bytes} bytes).`,
    )
  }

  keepEvent(event: string, value: string): void {
    const kept = { taskId: this.#taskId, number: (this.#events.at(-1)?.number ?? 0) + 1, event, value }
    this.#events.push(kept)
    this.#rows.keep(eventId(kept), kept)
  }

  /** Takes the earliest event of a name, as JSON. */
  takeEvent(name: string): string | undefined {
    const taken = this.#events.find(({ event }) => event === name)
    if (taken === undefined) return undefined
    this.#events = this.#events.filter((event) => event !== taken)
    this.#rows.drop(eventId(taken))
    return taken.value
  }

  /** Removes everything, because the task has ended. */
  drop(): void {
    for (const step of this.list()) this.#rows.drop(stepId(step))
    for (const event of this.#events) this.#rows.drop(eventId(event))
  }

  #put(step: Step): void {
    this.#steps.set(step.key, step)
    this.#rows.keep(stepId(step), step)
  }
}

/** Prevents names that look like the key of another step, also in a store with UTF-8, which has no lone surrogates. */
const NAME = /^[^#()\p{Cc}\p{Cs}]{1,100}$/u

/** @throws InvalidInputError */
export function checkName(name: unknown, field: string): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return
  throw new InvalidInputError(
    field,
    name,
    'a text of 1 to 100 characters without #, parentheses, control characters and lone surrogates',
  )
}

/**
 * The result of a step as JSON.
 * @throws InvalidInputError for a value without JSON
 */
export function toResult(value: unknown, field: string): Pick<Step, 'result'> {
  try {
    // `JSON.stringify` returns undefined for undefined, functions and symbols, despite its type.
    const result = JSON.stringify(value) as string | undefined
    return result === undefined ? {} : { result }
  } catch {
    throw new InvalidInputError(field, value, 'a value that JSON can represent')
  }
}

export const resultOf = ({ result }: Pick<Step, 'result'>): unknown =>
  result === undefined ? undefined : JSON.parse(result)

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export function stepsChanged(stored: Pick<Step, 'key'>, present: Pick<Step, 'key'>): AgentTasksError {
  return new AgentTasksError(
    'STEPS_CHANGED',
    `The run of an earlier process went on with step ${preview(stored.key)}, and this one with ${preview(present.key)}: the code of a task must not change while it runs, and steps must come in the same order.`,
  )
}

const tooLarge = (key: string, problem: string): AgentTasksError =>
  new AgentTasksError('STEP_LIMIT', `The result of step ${preview(key)} has ${problem}.`)

const byteLength = (text: string): number => new TextEncoder().encode(text).length

const sizeOf = ({ result = '', failure = '' }: StepEnd): number => byteLength(result) + byteLength(failure)
