/**
 * The steps of one task: which have begun, and how they have ended. All runs of the task share them.
 *
 * What is stored of a step is a row of its own, written when it begins and when it ends.
 */
import { z } from 'zod'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import type { TaskQuestion } from '../../../machines/records.js'
import type { StoredJson } from '../../store/store.js'
import { preview } from '../../text/preview.js'
import { isStepFailure, toStepFailure } from './step-failure.js'

/** What a task may keep: steps, and the JSON of their results together in bytes (64 MiB); of one result (1 MiB). */
const MAX = { steps: 1000, bytes: 64 * 1024 * 1024, resultBytes: 1024 * 1024 } as const

/** Events that wait to be taken: how many, and the JSON of their values together in bytes (256 KiB). */
export const MAX_EVENTS = { count: 100, bytes: 256 * 1024 } as const

const stepSchema = lazily(() =>
  z.object({
    taskId: z.string(),
    /** Its name, and its number if the name is used more than once. */
    key: z.string(),
    /** `sleep`, `event` and `question` wait for something outside of the run. */
    kind: z.enum(['work', 'sleep', 'event', 'question', 'launch', 'children']),
    /** Its beginning and its end among those of all steps of the task. */
    beganAt: z.int().positive(),
    endedAt: z.int().positive().optional(),
    /** Another step was open at some time while it was: their order says nothing. */
    overlaps: z.boolean(),
    /** How long the runs of the task had worked when it was written, in ms. */
    activeMs: z.number().min(0),
    /** The JSON text of its result; absent for undefined. */
    result: z.string().refine(isJson).optional(),
    /** The JSON text of its failure. */
    failure: z.string().refine(isStepFailure).optional(),
    /** When a wait is over, in ms since the epoch, and how long it takes in all. */
    dueAt: z.number().optional(),
    forMs: z.number().optional(),
    /** The run that waited has failed, and the next one has not asked for it: it may not wait. */
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
/** An event that no run has taken yet; `value` is JSON. */
export type KeptEvent = z.output<ReturnType<typeof eventSchema>>

/** How a step has ended. */
export type StepEnd = Pick<Step, 'result' | 'failure'>

/** A step as it begins. */
export type NewStep = Pick<Step, 'key' | 'kind'> & Partial<Pick<Step, 'dueAt' | 'forMs' | 'event'>>

/** Writes the rows of one task. */
export interface StepRows {
  readonly keep: (id: string, data: StoredJson) => void
  readonly drop: (id: string) => void
}

/** The length of the id is there because ids of tasks and keys of steps may have slashes themselves. */
const stepId = ({ taskId, key }: Step): string => `step/${taskId.length}/${taskId}/${key}`
const eventId = ({ taskId, number }: KeptEvent): string => `event/${taskId.length}/${taskId}/${number}`

const NO_ROWS: StepRows = { keep: () => undefined, drop: () => undefined }

export class StepLog {
  readonly #taskId: string
  /** In the order in which they began first. */
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

  /** What is added or changed from now on is stored. */
  store(rows: StepRows, activeMs: () => number): void {
    this.#rows = rows
    this.#activeMs = activeMs
  }

  /** Reads a row of an earlier process. False for one that is malformed. */
  read(row: StoredJson): boolean {
    const step = stepSchema().safeParse(row)
    const event = eventSchema().safeParse(row)
    if (step.success) this.#steps.set(step.data.key, step.data)
    else if (event.success) this.#events.push(event.data)
    return step.success || event.success
  }

  /** Everything is read. */
  order(): void {
    const steps = [...this.#steps.values()].sort((a, b) => a.beganAt - b.beganAt)
    this.#steps.clear()
    for (const step of steps) this.#steps.set(step.key, step)
    this.#keys = [...this.#steps.keys()]
    this.#changes = this.progress
    this.#bytes = steps.reduce((sum, step) => sum + sizeOf(step), 0)
    this.#events.sort((a, b) => a.number - b.number)
  }

  /** A number that is higher when a step has begun for the first time, or has ended. */
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
   * The steps for which a run waits, when all that it has begun waits; otherwise none.
   * @param questions those that are open
   */
  waits(questions: readonly TaskQuestion[] = []): Step[] {
    const open = this.list().filter(({ endedAt }) => endedAt === undefined)
    const isWait = ({ kind, questionId, isLeft }: Step): boolean =>
      isLeft !== true &&
      (kind === 'question' ? questions.some(({ id }) => id === questionId) : kind === 'sleep' || kind === 'event')
    return open.every(isWait) ? open : []
  }

  /** The step that waits for the answer to a question. */
  asking(questionId: string): Step | undefined {
    return this.list().find((step) => step.questionId === questionId && step.endedAt === undefined)
  }

  /** How many questions the runs of the task have asked. */
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

  /** The step at a place in the order in which they began first; undefined behind the last one. */
  at(place: number): Step | undefined {
    return this.#steps.get(this.#keys[place] ?? '')
  }

  /** Whether the last change was the beginning of one of the open steps: nothing has ended since for which the run goes on. */
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

  /** Another step has begun while this one is open. */
  setOverlaps(key: string): void {
    const step = this.#steps.get(key)
    if (step !== undefined && !step.overlaps) this.#put({ ...step, overlaps: true })
  }

  /** A step that is open has ended. One with a result that is too large has failed (`STEP_LIMIT`). */
  end(key: string, end: StepEnd): void {
    const step = this.#steps.get(key)
    if (step === undefined || step.endedAt !== undefined) return
    const excess = this.excessOf(end)
    const given = excess === undefined ? end : { failure: toStepFailure(tooLarge(key, excess)) }
    this.#changes += 1
    this.#bytes += sizeOf(given)
    this.#put({ ...step, ...given, endedAt: this.#changes, activeMs: this.#activeMs() })
  }

  /** How the end of a step is too large to be kept, in words; undefined when it is not. */
  excessOf(end: StepEnd): string | undefined {
    const bytes = sizeOf(end)
    if (bytes > MAX.resultBytes) return `${bytes} bytes of JSON, and a result may have ${MAX.resultBytes}`
    if (this.#bytes + bytes <= MAX.bytes) return undefined
    return `${bytes} bytes of JSON, and all steps of its task would have more than ${MAX.bytes}`
  }

  /** Another run follows. @param keepsFailures it does not repeat what has failed */
  leave(keepsFailures: boolean): void {
    for (const step of this.list()) {
      const { failure, endedAt, ...open } = step
      if (endedAt === undefined) this.#put({ ...step, isLeft: true })
      if (failure === undefined || keepsFailures) continue
      this.#bytes -= byteLength(failure)
      this.#put(open)
    }
  }

  /** @param isTaken a step waits for the event: it is not kept. @throws AgentTasksError `EVENTS_FULL` */
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

  /** The earliest event of a name, as JSON. */
  takeEvent(name: string): string | undefined {
    const taken = this.#events.find(({ event }) => event === name)
    if (taken === undefined) return undefined
    this.#events = this.#events.filter((event) => event !== taken)
    this.#rows.drop(eventId(taken))
    return taken.value
  }

  /** The task has ended: nothing of it is kept. */
  drop(): void {
    for (const step of this.list()) this.#rows.drop(stepId(step))
    for (const event of this.#events) this.#rows.drop(eventId(event))
  }

  #put(step: Step): void {
    this.#steps.set(step.key, step)
    this.#rows.keep(stepId(step), step)
  }
}

/** The names of steps and events may not look like the key of another step, also in a store of UTF-8, which has no lone surrogates. */
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

/** What a step returns as JSON. @throws InvalidInputError for what has none */
export function toResult(value: unknown, field: string): Pick<Step, 'result'> {
  try {
    // For undefined, and for functions and symbols, there is no text, whatever the type says.
    const result = JSON.stringify(value) as string | undefined
    return result === undefined ? {} : { result }
  } catch {
    throw new InvalidInputError(field, value, 'a value that JSON can represent')
  }
}

export const resultOf = ({ result }: Pick<Step, 'result'>): unknown =>
  result === undefined ? undefined : JSON.parse(result)

/** Whether a text that was read from a store is JSON. */
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
