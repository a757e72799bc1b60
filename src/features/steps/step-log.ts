/**
 * The steps of one task: which have begun, and how they have ended. All runs of the task share them.
 *
 * Each step is a row in the store. It is written when the step begins and when it ends.
 */
import { z } from 'zod'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import type { TaskQuestion } from '../../../machines/records.js'
import type { StoredJson } from '../../store/store.js'
import { preview } from '../../data/preview.js'
import { isStepFailure, toStepFailure } from './step-failure.js'

/** The limits of a task: the number of its steps, and the size of all results and of one result, in bytes of JSON. */
const MAX = { steps: 1000, bytes: 64 * 1024 * 1024, resultBytes: 1024 * 1024 } as const

/** The limits of events that no run has taken yet: their number, and the total size of their values in bytes of JSON. */
export const MAX_EVENTS = { count: 100, bytes: 256 * 1024 } as const

const stepSchema = lazily(() =>
  z.object({
    taskId: z.string(),
    /** The name of the step. From the second use of a name on, it ends with a number, such as `fetch#2`. */
    key: z.string(),
    /** `sleep`, `event` and `question` are waits for something outside of the run. */
    kind: z.enum(['work', 'sleep', 'event', 'question', 'launch', 'children']),
    /** When the step began and ended, as positions in the sequence of all beginnings and ends of steps of the task. */
    beganAt: z.int().positive(),
    endedAt: z.int().positive().optional(),
    /** Whether another step was open at the same time. The order of such steps may differ between runs. */
    overlaps: z.boolean(),
    /** How long the runs of the task had worked when this row was written, in ms. */
    activeMs: z.number().min(0),
    /** The JSON text of the result. Absent if the result is undefined. */
    result: z.string().refine(isJson).optional(),
    /** The JSON text of the failure. */
    failure: z.string().refine(isStepFailure).optional(),
    /** When a wait with a time limit is over, in ms since the epoch, and how long it lasts in total, in ms. */
    dueAt: z.number().optional(),
    forMs: z.number().optional(),
    /** Set if the run that was waiting has failed. Removed when the next run requests this step. */
    isLeft: z.literal(true).optional(),
    /** What the step waits for: an event of this name, or the answer to the question with this id. */
    event: z.string().optional(),
    questionId: z.string().optional(),
    /** The tasks whose ends a wait for children needs, and whether the end of one of them is enough. */
    children: z.array(z.string()).optional(),
    isAny: z.literal(true).optional(),
  }),
)
export type Step = z.output<ReturnType<typeof stepSchema>>

const eventSchema = lazily(() =>
  z.object({ taskId: z.string(), number: z.int(), event: z.string(), value: z.string().refine(isJson) }),
)
/** An event that no run has taken yet. `value` is JSON. */
export type KeptEvent = z.output<ReturnType<typeof eventSchema>>

export type StepEnd = Pick<Step, 'result' | 'failure'>

export type NewStep = Pick<Step, 'key' | 'kind'> &
  Partial<Pick<Step, 'dueAt' | 'forMs' | 'event' | 'children' | 'isAny'>>

export interface StepRows {
  readonly keep: (id: string, data: StoredJson) => void
  readonly drop: (id: string) => void
}

/** Whether a wait for children is over. Rows of earlier versions do not name the children, so they count as over. */
function areChildrenOver({ children = [], isAny }: Step, hasEnded: (taskId: string) => boolean): boolean {
  return isAny === true ? children.length === 0 || children.some(hasEnded) : children.every(hasEnded)
}

/** The length of the task id makes the row id unique, because ids and keys may contain slashes. */
const stepId = ({ taskId, key }: Step): string => `step/${taskId.length}/${taskId}/${key}`
const eventId = ({ taskId, number }: KeptEvent): string => `event/${taskId.length}/${taskId}/${number}`

const NO_ROWS: StepRows = { keep: () => undefined, drop: () => undefined }

export class StepLog {
  readonly #taskId: string
  /** The steps by key, in the order in which they began. */
  readonly #steps = new Map<string, Step>()
  /** The keys in the same order, to find a step by its position. */
  #keys: string[] = []
  #events: KeptEvent[] = []
  #rows = NO_ROWS
  #activeMs = (): number => 0
  #changes = 0
  #bytes = 0

  constructor(taskId: string) {
    this.#taskId = taskId
  }

  /** Writes every addition and change to the store from now on. */
  store(rows: StepRows, activeMs: () => number): void {
    this.#rows = rows
    this.#activeMs = activeMs
  }

  /** Adds a row of an earlier process. Returns false if the row is malformed. */
  read(row: StoredJson): boolean {
    const step = stepSchema().safeParse(row)
    const event = eventSchema().safeParse(row)
    if (step.success) this.#steps.set(step.data.key, step.data)
    else if (event.success) this.#events.push(event.data)
    return step.success || event.success
  }

  /** Sorts the steps. Called once, when all rows were added. */
  order(): void {
    const steps = [...this.#steps.values()].sort((a, b) => a.beganAt - b.beganAt)
    this.#steps.clear()
    for (const step of steps) this.#steps.set(step.key, step)
    this.#keys = [...this.#steps.keys()]
    this.#changes = this.progress
    this.#bytes = steps.reduce((sum, step) => sum + sizeOf(step), 0)
    this.#events.sort((a, b) => a.number - b.number)
  }

  /** A number that increases when a step begins and when a step ends. */
  get progress(): number {
    return this.list().reduce((latest, { beganAt, endedAt = 0 }) => Math.max(latest, beganAt, endedAt), 0)
  }

  /** How long the runs of the task had worked when a step was last written, in ms. */
  get activeMs(): number {
    return this.list().reduce((most, { activeMs }) => Math.max(most, activeMs), 0)
  }

  list(): Step[] {
    return [...this.#steps.values()]
  }

  /**
   * Returns the open steps if all of them are waits, so that the run cannot continue by itself. Otherwise returns an empty array.
   * @param questions the open questions of the task
   * @param hasEnded whether the task with this id has ended or is unknown
   */
  waits(questions: readonly TaskQuestion[] | undefined, hasEnded: (taskId: string) => boolean): Step[] {
    const open = this.list().filter(({ endedAt }) => endedAt === undefined)
    const isWait = (step: Step): boolean => {
      if (step.isLeft === true) return false
      if (step.kind === 'question') return questions?.some(({ id }) => id === step.questionId) === true
      if (step.kind === 'children') return !areChildrenOver(step, hasEnded)
      return step.kind === 'sleep' || step.kind === 'event'
    }
    return open.every(isWait) ? open : []
  }

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

  /** Returns the step at a position in the order of beginnings; undefined if there are fewer steps. */
  at(place: number): Step | undefined {
    return this.#steps.get(this.#keys[place] ?? '')
  }

  /** Whether the step that began or ended last has only begun. Then no step has ended since, so the run has had no reason to continue. */
  get endsOpen(): boolean {
    const last = this.progress
    return this.list().some(({ beganAt, endedAt }) => endedAt === undefined && beganAt === last)
  }

  get(key: string): Step | undefined {
    return this.#steps.get(key)
  }

  /** @throws AgentTasksError `STEP_LIMIT` if the task has too many steps, `STEPS_CHANGED` if the stored step is of another kind */
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
        `Task ${preview(this.#taskId)} has reached the maximum of ${MAX.steps} steps.`,
      )
    }
    const begun = { ...step, taskId: this.#taskId, beganAt: (this.#changes += 1), overlaps, activeMs: this.#activeMs() }
    this.#put(begun)
    this.#keys.push(begun.key)
    return begun
  }

  /** Records that another step has begun while this step is open. */
  setOverlaps(key: string): void {
    const step = this.#steps.get(key)
    if (step !== undefined && !step.overlaps) this.#put({ ...step, overlaps: true })
  }

  /** Ends an open step. If the result is too large, the step fails with `STEP_LIMIT` instead. */
  end(key: string, end: StepEnd): void {
    const step = this.#steps.get(key)
    if (step === undefined || step.endedAt !== undefined) return
    const excess = this.excessOf(end)
    const given = excess === undefined ? end : { failure: toStepFailure(tooLarge(key, excess)) }
    this.#changes += 1
    this.#bytes += sizeOf(given)
    this.#put({ ...step, ...given, endedAt: this.#changes, activeMs: this.#activeMs() })
  }

  /** Describes why the result of a step is too large; undefined if it fits. */
  excessOf(end: StepEnd): string | undefined {
    const bytes = sizeOf(end)
    if (bytes > MAX.resultBytes) return `${bytes} bytes of JSON, and the maximum of one result is ${MAX.resultBytes}`
    if (this.#bytes + bytes <= MAX.bytes) return undefined
    return `${bytes} bytes of JSON, and with it the results of all steps of the task would exceed the maximum of ${MAX.bytes} bytes`
  }

  /**
   * Prepares the steps for another run.
   * @param keepsFailures whether failed steps fail again in the next run; otherwise they are run again
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
   * @param isTaken whether a step is waiting for the event, so that it need not be kept
   * @throws AgentTasksError `EVENTS_FULL`
   */
  checkRoom(bytes: number, isTaken: boolean): void {
    const kept = this.#events.reduce((sum, { value }) => sum + byteLength(value), 0)
    const others = isTaken ? { count: 0, bytes: 0 } : { count: this.#events.length, bytes: kept }
    if (others.count < MAX_EVENTS.count && others.bytes + bytes <= MAX_EVENTS.bytes) return
    throw new AgentTasksError(
      'EVENTS_FULL',
      `Task ${preview(this.#taskId)} cannot keep another event. Its run has not taken ${this.#events.length} events (${kept} bytes), and the maximum is ${MAX_EVENTS.count} events (${MAX_EVENTS.bytes} bytes).`,
    )
  }

  keepEvent(event: string, value: string): void {
    const kept = { taskId: this.#taskId, number: (this.#events.at(-1)?.number ?? 0) + 1, event, value }
    this.#events.push(kept)
    this.#rows.keep(eventId(kept), kept)
  }

  /** Removes the earliest event with this name and returns its value as JSON. */
  takeEvent(name: string): string | undefined {
    const taken = this.#events.find(({ event }) => event === name)
    if (taken === undefined) return undefined
    this.#events = this.#events.filter((event) => event !== taken)
    this.#rows.drop(eventId(taken))
    return taken.value
  }

  /** Removes all rows, because the task has ended. */
  drop(): void {
    for (const step of this.list()) this.#rows.drop(stepId(step))
    for (const event of this.#events) this.#rows.drop(eventId(event))
  }

  #put(step: Step): void {
    this.#steps.set(step.key, step)
    this.#rows.keep(stepId(step), step)
  }
}

/**
 * The characters of a name. `#` and parentheses are excluded because keys use them. Lone surrogates are excluded because a store with UTF-8 cannot
 * keep them.
 */
const NAME = /^[^#()\p{Cc}\p{Cs}]{1,100}$/u

/** @throws INVALID_INPUT */
export function checkName(name: unknown, field: string): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return
  throw new InvalidInputError(
    field,
    name,
    'a text of 1 to 100 characters without #, parentheses, control characters and lone surrogates',
  )
}

/**
 * Converts the result of a step to JSON.
 * @throws INVALID_INPUT for a value that JSON cannot represent
 */
export function toResult(value: unknown, field: string): Pick<Step, 'result'> {
  try {
    // `JSON.stringify` returns undefined for undefined, functions and symbols, although its type says `string`.
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
    `An earlier run of this task has step ${preview(stored.key)} where this run requests step ${preview(present.key)}. Every run of a task must request the same steps in the same order, so the code must not change while the task is active.`,
  )
}

const tooLarge = (key: string, problem: string): AgentTasksError =>
  new AgentTasksError('STEP_LIMIT', `The result of step ${preview(key)} has ${problem}.`)

const byteLength = (text: string): number => new TextEncoder().encode(text).length

const sizeOf = ({ result = '', failure = '' }: StepEnd): number => byteLength(result) + byteLength(failure)
