/**
 * The steps of one run. A run that is repeated asks for the same steps in the same order, and gets what the earlier runs have stored of them.
 *
 * The order is compared for steps that are open alone. A run waits when everything that it has begun waits: then its time does not count, and it may give
 * back its slot. Whatever it waits for, it goes on when it has its slot again.
 *
 * It is long because a step, a wait, a launch and a wait for children share what is open in the run.
 */
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { QueueTicket } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { AgentTasksError, InvalidInputError, QuestionWithdrawnError } from '../../errors.js'
import type { RunChildren, WaitOptions, WaitResult } from '../../engine/children.js'
import type { AskOptions, StepOptions, WaitForOptions, SleepOptions } from '../../engine/steps.js'
import { cutText } from '../../text/cut-text.js'
import { unawaited } from '../../callbacks/unawaited.js'
import { isNode, nodeBuiltin } from '../../node-builtins.js'
import { ownerOfRun } from '../../../machines/families.js'
import { checkIds } from '../families/families.js'
import type { ActiveTaskInfo, AskedQuestion, TaskAnswer } from '../../../machines/records.js'
import { checkOptions, integerFrom, aName, numberFrom, type OptionTypes } from '../../protocol/option-checks.js'
import { aBackoff, backoffMs } from '../../protocol/retry-policy.js'
import type { TaskQuestionInput } from '../../protocol/task-questions.js'
import { openQuestion, toQuestion } from '../questions/questions.js'
import { reducedRecord, storedRecord } from '../recovery/stored-records.js'
import type { WordedWaitOptions } from '../waiting.js'
import type { TaskRegistry } from '../registry.js'
import { stepError, toStepFailure } from './step-failure.js'
import {
  checkName,
  resultOf,
  stepsChanged,
  toResult,
  type NewStep,
  type Step,
  type StepEnd,
  type StepLog,
} from './step-log.js'
import { stepRuns, steps, type StepRun, type Steps } from './steps.js'

/** How a run has steps. */
export interface StepHost {
  readonly signal: AbortSignal
  /** Whether it is the present run of its task. */
  readonly isCurrent: () => boolean
  /** How it waits for its slot after it has given it back; undefined for a run that keeps it. */
  readonly ticket: QueueTicket | undefined
}

const stepOptionTypes: OptionTypes<StepOptions> = { attempts: integerFrom(1), backoff: aBackoff }
const sleepOptionTypes: OptionTypes<SleepOptions> = { name: aName }
const waitOptionTypes: OptionTypes<WaitForOptions> = { name: aName, timeoutMs: numberFrom(0) }

/** How much a key has of the ids of children, in UTF-16 units: indexes of a store limit it. */
const MAX_KEY_CHARS = 300

/** Which run the work of a step belongs to. Only Node knows it. */
let workOf: AsyncLocalStorage<StepsOfRun> | undefined

export class StepsOfRun implements StepRun {
  /** Why it has failed: its steps are not those of the earlier runs. */
  failure: AgentTasksError | undefined
  readonly #registry: TaskRegistry
  readonly #feature: Steps
  readonly #entry: TaskEntry
  readonly #host: StepHost
  readonly #log: StepLog
  /** How often a name was used. */
  readonly #counts = new Map<string, number>()
  readonly #requested = new Set<string>()
  /** All steps before this place overlap others, or were requested. */
  #place = 0
  readonly #open = new Map<string, Step>()
  /** What goes on when a step has ended, by its key. */
  readonly #waiting = new Map<string, () => void>()
  /** What goes on when the run has its slot again. */
  #resuming: (() => void)[] = []
  #isIdle = false
  /** What waits: how it is rejected, and what has to be done when the run is over. */
  readonly #pending = new Map<(reason: unknown) => void, (() => void) | undefined>()

  constructor(registry: TaskRegistry, entry: TaskEntry, host: StepHost) {
    this.#registry = registry
    this.#feature = registry.use(steps)
    this.#entry = entry
    this.#host = host
    this.#log = this.#feature.logOf(entry)
    stepRuns.set(entry, this)
    host.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  readonly #onAbort = (): void => {
    const rejects = [...this.#pending.keys()]
    this.#endPending()
    for (const reject of rejects) reject(this.#host.signal.reason)
  }

  async step<T>(name: string, work: () => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    checkName(name, 'name')
    if (typeof work !== 'function') throw new InvalidInputError('work', work, 'a function')
    checkOptions(options, stepOptionTypes)
    const step = this.#begin({ key: this.#keyOf(name), kind: 'work' })
    if (step.endedAt !== undefined) return replay(step) as T
    let cause: unknown
    try {
      await this.#work()
      const { end, reason } = await this.#attempt(work, options)
      cause = reason
      this.#end(step.key, end)
      await this.#promise((resolve) => this.#feature.afterStored(this.#entry, resolve))
    } finally {
      this.#open.delete(step.key)
      this.#idle()
    }
    return replay(this.#log.get(step.key) ?? step, cause) as T
  }

  async sleep(time: number | Date, options: SleepOptions = {}): Promise<void> {
    checkOptions(options, sleepOptionTypes)
    const now = this.#registry.clock.now()
    const dueAt = time instanceof Date ? time.getTime() : typeof time === 'number' ? now + time : Number.NaN
    if (!Number.isFinite(dueAt)) throw new InvalidInputError('time', time, 'a number of ms, or a Date')
    const forMs = typeof time === 'number' ? { forMs: time } : undefined
    await this.#wait({ key: this.#keyOf(callOf('sleep', options.name)), kind: 'sleep', dueAt, ...forMs })
  }

  async ask(input: TaskQuestionInput, options: AskOptions = {}): Promise<TaskAnswer> {
    const question = toQuestion(this.#registry, input, options)
    const { name, signal } = options
    const step = this.#begin({ key: this.#keyOf(callOf('ask', name)), kind: 'question' })
    const { key } = step
    const withdraw = (): void => this.#registry.batch(() => this.#withdraw(key))
    signal?.addEventListener('abort', withdraw, { once: true })
    try {
      return (await this.#await(step, () => this.#ask(key, question, signal))) as TaskAnswer
    } finally {
      signal?.removeEventListener('abort', withdraw)
    }
  }

  /** Asks, unless the question of an earlier run is still open. */
  #ask(key: string, question: AskedQuestion, signal: AbortSignal | undefined): void {
    const { questionId } = this.#log.get(key) ?? {}
    const isAborted = signal?.aborted === true
    if (!isAborted && this.#isOpen(questionId)) return
    const id = isAborted ? undefined : openQuestion(this.#entry, question)
    if (id === undefined) this.#withdraw(key)
    else this.#log.setQuestion(key, id)
  }

  #withdraw(key: string): void {
    const step = this.#log.get(key)
    if (step === undefined || step.endedAt !== undefined) return
    this.#feature.fail(this.#entry, key, new QuestionWithdrawnError(this.#entry.record.id))
    if (step.questionId !== undefined) this.#entry.ref?.send({ type: 'task.answer', questionId: step.questionId })
  }

  #isOpen(questionId: string | undefined): boolean {
    return this.#entry.record.questions?.some(({ id }) => id === questionId) === true
  }

  async waitFor(event: string, options: WaitForOptions = {}): Promise<unknown> {
    checkName(event, 'event')
    checkOptions(options, waitOptionTypes)
    const { name = event, timeoutMs } = options
    const limit =
      timeoutMs === undefined ? undefined : { dueAt: this.#registry.clock.now() + timeoutMs, forMs: timeoutMs }
    return this.#wait({ key: this.#keyOf(callOf('waitFor', name)), kind: 'event', event, ...limit })
  }

  /** Launches a task once: a repeated run gets the record of the one that it has. */
  launch(launch: () => ActiveTaskInfo): ActiveTaskInfo {
    return this.#registry.batch(() => {
      const step = this.#begin({ key: this.#keyOf('launch()'), kind: 'launch' })
      this.#open.delete(step.key)
      if (step.endedAt !== undefined) return Object.freeze(replay(step)) as ActiveTaskInfo
      let launched: ActiveTaskInfo
      try {
        launched = launch()
      } catch (error) {
        this.#log.end(step.key, { failure: toStepFailure(error) })
        throw error
      }
      // A goal may be larger than the result of a step.
      const whole = toResult(storedRecord(launched), 'launch()')
      const isTooLarge = this.#log.excessOf(whole) !== undefined
      this.#log.end(step.key, isTooLarge ? toResult(reducedRecord(launched), 'launch()') : whole)
      return launched
    })
  }

  /** The same of the tasks that the run has launched: their results are taken and stored in one write. */
  children(children: RunChildren): RunChildren {
    return { ...children, waitFor: (ids, options) => unawaited(() => this.#waitForChildren(children, ids, options)) }
  }

  async #waitForChildren(
    children: RunChildren,
    named: readonly string[] | undefined,
    options: WaitOptions = {},
  ): Promise<WaitResult> {
    checkIds(named)
    const shown = cutText(named?.join() ?? '', MAX_KEY_CHARS)
    const step = this.#begin({ key: this.#keyOf(`children.waitFor(${shown})`), kind: 'children' })
    if (step.endedAt !== undefined) return replay(step) as WaitResult
    const { key } = step
    const ids = named ?? children.ids()
    const owner = ownerOfRun(this.#entry.record.id)
    try {
      this.#idle()
      const take: Pick<WordedWaitOptions, 'onSettled' | 'hold'> = {
        onSettled: (settled, pending) => {
          const known = new Set([...settled, ...pending].map(({ id }) => id))
          const result = {
            settled: settled.map(storedRecord),
            pending: pending.map(storedRecord),
            unknown: ids.filter((id) => !known.has(id)),
          }
          this.#log.end(key, toResult(result, key))
          // What it has no place for is still owed.
          const { failure } = this.#log.get(key) ?? step
          if (failure !== undefined) throw stepError(failure)
          return settled
        },
        hold: ({ acknowledge }) => {
          acknowledge()
          this.#registry.persistence?.confirmOwner(owner)
        },
      }
      await children.waitFor(ids, { ...options, ...take })
      await this.#work()
      return replay(this.#log.get(key) ?? step) as WaitResult
    } finally {
      this.#open.delete(key)
      this.#idle()
    }
  }

  ended(key: string): void {
    this.#open.delete(key)
    const waiter = this.#waiting.get(key)
    this.#waiting.delete(key)
    if (waiter !== undefined) this.#whenWorking(waiter)
  }

  /** What was withdrawn, as by the deadline, ends its step. */
  asked(): void {
    for (const key of this.#open.keys()) {
      const { kind, questionId } = this.#log.get(key) ?? {}
      if (kind === 'question' && !this.#isOpen(questionId)) this.#withdraw(key)
    }
  }

  resumed(): void {
    this.#isIdle = false
    for (const resume of this.#resuming.splice(0)) resume()
  }

  /** The run is over. What it has not awaited never settles: nobody may be there to catch an error. */
  close(): void {
    if (stepRuns.get(this.#entry) === this) stepRuns.take(this.#entry)
    this.#host.signal.removeEventListener('abort', this.#onAbort)
    this.#endPending()
  }

  async #wait(step: NewStep): Promise<unknown> {
    const begun = this.#begin(step)
    return this.#await(begun, () => this.#feature.wait(this.#entry, begun))
  }

  /** @param start begins to wait for what ends the step */
  async #await(begun: Step, start: () => void): Promise<unknown> {
    if (begun.endedAt !== undefined) return replay(begun)
    const { key } = begun
    await this.#promise((resolve) => {
      this.#waiting.set(key, resolve)
      this.#registry.batch(() => {
        start()
        // Its event may have come before.
        if (this.#log.get(key)?.endedAt === undefined) this.#idle()
      })
    })
    return replay(this.#log.get(key) ?? begun)
  }

  #begin(step: NewStep): Step {
    if (this.failure !== undefined) throw this.failure
    if (!this.#host.isCurrent() || this.#entry.ref === undefined) throw overError(this.#entry)
    this.#host.signal.throwIfAborted()
    const others = [...this.#open.keys()]
    const stored = this.#log.get(step.key)
    try {
      if (others.length === 0 && stored?.overlaps !== true) this.#checkOrder(step)
      const begun = this.#registry.batch(() => this.#log.begin(step, others.length > 0))
      this.#requested.add(step.key)
      if (begun.endedAt !== undefined) return begun
      for (const key of others.length > 0 ? [...others, step.key] : []) this.#log.setOverlaps(key)
      this.#open.set(step.key, begun)
      return begun
    } catch (error) {
      if (error instanceof AgentTasksError && error.code === 'STEPS_CHANGED') this.failure = error
      throw error
    }
  }

  /** Of the steps that were open alone, the first that this run has not asked for comes next. */
  #checkOrder(step: NewStep): void {
    let next = this.#log.at(this.#place)
    while (next !== undefined && (next.overlaps || this.#requested.has(next.key))) {
      next = this.#log.at((this.#place += 1))
    }
    if (next !== undefined && next.key !== step.key) throw stepsChanged(next, step)
  }

  /** What is refused here is not counted: a run that gets the result of the step that it was in does not repeat it. */
  #keyOf(name: string): string {
    if (workOf?.getStore() === this) {
      throw new AgentTasksError('STEP_NESTED', `${name} was called inside a step: a step has no steps of its own.`)
    }
    const isOpen = [...this.#open.keys()].some((key) => key === name || key.startsWith(`${name}#`))
    if (isOpen) throw new InvalidInputError('name', name, 'a name that no step has that is still open')
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    return count === 1 ? name : `${name}#${count}`
  }

  async #attempt<T>(
    work: () => T | Promise<T>,
    { attempts = 1, backoff }: StepOptions,
  ): Promise<{ readonly end: StepEnd; readonly reason?: unknown }> {
    const { signal } = this.#host
    for (let attempt = 1; ; attempt += 1) {
      try {
        return { end: toResult(await this.#inStep(work), 'result') }
      } catch (reason) {
        // What is stopped has not failed.
        if (signal.aborted || !this.#host.isCurrent()) throw reason
        if (attempt >= attempts) return { end: { failure: toStepFailure(reason) }, reason }
        await this.#pause(backoffMs(backoff, attempt))
      }
    }
  }

  #inStep<T>(work: () => T | Promise<T>): T | Promise<T> {
    if (!isNode) return work()
    workOf ??= new (nodeBuiltin('node:async_hooks').AsyncLocalStorage)<StepsOfRun>()
    return workOf.run(this, work)
  }

  #end(key: string, end: StepEnd): void {
    if (!this.#host.isCurrent() || this.#entry.ref === undefined) throw overError(this.#entry)
    this.#registry.batch(() => this.#log.end(key, end))
  }

  /** The run waits if all that it has begun waits. */
  #idle(): void {
    const { active } = this.#registry
    const open = [...this.#open.values()]
    const isWaiting = open.length > 0 && open.every(({ kind }) => kind !== 'work')
    if (this.#isIdle || !isWaiting || !active.has(this.#entry) || this.#entry.ref === undefined) return
    this.#isIdle = true
    this.#registry.send({ type: 'run.waits', entry: this.#entry, ticket: this.#host.ticket })
  }

  #work(): Promise<void> {
    return this.#promise((resolve) => this.#whenWorking(resolve))
  }

  #whenWorking(go: () => void): void {
    if (!this.#isIdle) {
      go()
      return
    }
    this.#resuming.push(go)
    this.#registry.send({ type: 'run.works', entry: this.#entry })
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.#registry
    let timer: unknown
    return this.#promise(
      (resolve) => {
        timer = clock.setTimeout(resolve, ms, { name: `next attempt of a step of ${this.#entry.record.id}` })
      },
      () => clock.clearTimeout(timer),
    )
  }

  /**
   * A promise that rejects when the run is to stop. One that nobody awaits does not end the process.
   * @param end is called when it is not resolved
   */
  #promise(start: (resolve: () => void) => void, end?: () => void): Promise<void> {
    const promise = new Promise<void>((resolve, reject) => {
      this.#pending.set(reject, end)
      start(() => {
        this.#pending.delete(reject)
        resolve()
      })
    })
    promise.catch(() => undefined)
    return promise
  }

  #endPending(): void {
    for (const end of this.#pending.values()) end?.()
    this.#pending.clear()
  }
}

/** Returns what a step has returned, or throws what it has thrown. */
function replay(step: Step, cause?: unknown): unknown {
  const { failure } = step
  if (failure !== undefined) throw stepError(failure, cause)
  return resultOf(step)
}

function callOf(call: string, name = ''): string {
  if (name !== '') checkName(name, 'options.name')
  return `${call}(${name})`
}

export const overError = ({ record: { id } }: TaskEntry): AgentTasksError =>
  new AgentTasksError('RUN_ENDED', `This run of task ${id} is over: it has no more steps.`)
