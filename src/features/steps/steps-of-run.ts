/**
 * The steps of one run. A later run of the same task requests the same steps in the same order, and receives the stored results of earlier runs.
 *
 * The order is checked only for steps that no other step overlapped. When all open steps of a run are waits, the run is waiting: the time does not
 * count, and the run may give back its slot. It continues when it has a slot again.
 *
 * The file is long because steps, waits, launches and waits for children share the open steps of the run.
 */
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { QueueTicket } from '../../../machines/task-admission.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { AgentTasksError, DisposedError, InvalidInputError, QuestionWithdrawnError } from '../../errors.js'
import type { RunChildren, WaitOptions, WaitResult } from '../../engine/children.js'
import type { AskOptions, StepOptions, WaitForOptions, SleepOptions } from '../../engine/steps.js'
import { cutText } from '../../data/cut-text.js'
import { unawaited } from '../../isolation/unawaited.js'
import { isNode, nodeBuiltin } from '../../system/node-builtins.js'
import { ownerOfRun } from '../../../machines/run-owner.js'
import { checkIds } from '../families/families.js'
import type { ActiveTaskInfo, AskedQuestion, TaskAnswer } from '../../../machines/records.js'
import { aName, checkOptions, integerFrom, numberFrom, type OptionTypes } from '../../protocol/option-checks.js'
import { aBackoff, backoffMs } from '../../protocol/retry-policy.js'
import type { TaskQuestionInput } from '../../protocol/task-questions.js'
import { openQuestion, toQuestion } from '../questions/questions.js'
import { reducedRecord, storedRecord } from '../../async-tasks/recovery/stored-records.js'
import type { WordedWaitOptions } from '../../async-tasks/waiting.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
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

export interface StepHost {
  readonly signal: AbortSignal
  readonly isCurrent: () => boolean
  /** The place in the queue when the run has given back its slot and needs one again. Undefined for a run that keeps its slot. */
  readonly ticket: QueueTicket | undefined
  /** Called when the run was suspended and works no more: no open step works, and it waits for a step that never settles. */
  readonly onRest: () => void
}

const stepOptionTypes: OptionTypes<StepOptions> = { attempts: integerFrom(1), backoff: aBackoff }
const sleepOptionTypes: OptionTypes<SleepOptions> = { name: aName }
const waitOptionTypes: OptionTypes<WaitForOptions> = { name: aName, timeoutMs: numberFrom(0) }

/** The maximum length of the children's ids in a key, in UTF-16 units. Stores limit the size of indexed texts. */
const MAX_KEY_CHARS = 300

/** Knows, inside the function of a step, to which run the step belongs. Works only in Node. */
let workOf: AsyncLocalStorage<StepsOfRun> | undefined

export class StepsOfRun implements StepRun {
  /** Set if the steps of this run differ from those of earlier runs. The run then fails with this error. */
  failure: AgentTasksError | undefined
  readonly #registry: TaskRegistry
  readonly #feature: Steps
  readonly #entry: TaskEntry
  readonly #host: StepHost
  readonly #log: StepLog
  /** How often this run has used each name. */
  readonly #counts = new Map<string, number>()
  readonly #requested = new Set<string>()
  /** All steps before this position were requested by this run, or overlapped other steps. */
  #place = 0
  readonly #open = new Map<string, Step>()
  /** By key of a step, the function that continues the run when the step has ended. */
  readonly #waiting = new Map<string, () => void>()
  /** The functions that continue the run when it has its slot again. */
  #resuming: (() => void)[] = []
  #isIdle = false
  /** How many functions of steps run now. */
  #working = 0
  /** The open promises: their reject functions, and for each of them a clean-up for the end of the run. */
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

  /**
   * Whether the process ends and the next one goes on with the run. From then on no step settles, so that no `catch` and no `finally` of the run acts as
   * if the task had failed.
   */
  #isSuspended(): boolean {
    return this.#registry.isSuspended(this.#entry) && this.#registry.active.has(this.#entry)
  }

  suspended(): void {
    const isWaiting = this.#pending.size > 0 || [...this.#open.values()].some(({ kind }) => kind === 'children')
    this.#endPending()
    if (isWaiting && this.#working === 0) this.#host.onRest()
  }

  /** Never settles, because the run is suspended. */
  #hang(): Promise<never> {
    if (this.#working === 0) this.#host.onRest()
    return new Promise(() => undefined)
  }

  readonly #onAbort = (): void => {
    if (this.#isSuspended()) return
    const rejects = [...this.#pending.keys()]
    this.#endPending()
    for (const reject of rejects) reject(this.#host.signal.reason)
  }

  async step<T>(name: string, work: () => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    checkName(name, 'name')
    if (typeof work !== 'function') throw new InvalidInputError('work', work, 'a function')
    checkOptions(options, stepOptionTypes)
    if (this.#isSuspended()) return this.#hang()
    const step = this.#begin({ key: this.#keyOf(name), kind: 'work' })
    if (step.endedAt !== undefined) return replay(step) as T
    let cause: unknown
    try {
      await this.#work()
      const { end, reason } = await this.#attempt(work, options)
      cause = reason
      this.#end(step.key, end)
      await this.#promise((resolve) => this.#feature.afterStored(this.#entry, resolve))
      if (this.#isSuspended()) return await this.#hang()
    } finally {
      this.#open.delete(step.key)
      this.#idle()
    }
    return replay(this.#log.get(step.key) ?? step, cause) as T
  }

  async sleep(time: number | Date, options: SleepOptions = {}): Promise<void> {
    checkOptions(options, sleepOptionTypes)
    if (this.#isSuspended()) return this.#hang()
    const now = this.#registry.clock.now()
    const dueAt = time instanceof Date ? time.getTime() : typeof time === 'number' ? now + time : Number.NaN
    if (!Number.isFinite(dueAt)) throw new InvalidInputError('time', time, 'a number of ms, or a Date')
    const forMs = typeof time === 'number' ? { forMs: time } : undefined
    await this.#wait({ key: this.#keyOf(callOf('sleep', options.name)), kind: 'sleep', dueAt, ...forMs })
  }

  async ask(input: TaskQuestionInput, options: AskOptions = {}): Promise<TaskAnswer> {
    const question = toQuestion(this.#registry, input, options)
    if (this.#isSuspended()) return this.#hang()
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

  /** Opens the question, unless it is still open because an earlier run has asked it. */
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
    if (this.#isSuspended()) return this.#hang()
    const { name = event, timeoutMs } = options
    const limit =
      timeoutMs === undefined ? undefined : { dueAt: this.#registry.clock.now() + timeoutMs, forMs: timeoutMs }
    return this.#wait({ key: this.#keyOf(callOf('waitFor', name)), kind: 'event', event, ...limit })
  }

  /** Launches a task. A repeated run launches nothing, but receives the record of the task that the earlier run has launched. */
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
      // The record contains the goal, which may be larger than the result of a step may be.
      const whole = toResult(storedRecord(launched), 'launch()')
      const isTooLarge = this.#log.excessOf(whole) !== undefined
      this.#log.end(step.key, isTooLarge ? toResult(reducedRecord(launched), 'launch()') : whole)
      return launched
    })
  }

  /** Returns `context.children` of a durable run. Its `waitFor` is a step: taking the results and storing them is one write. */
  children(children: RunChildren): RunChildren {
    return { ...children, waitFor: (ids, options) => unawaited(() => this.#waitForChildren(children, ids, options)) }
  }

  async #waitForChildren(
    children: RunChildren,
    named: readonly string[] | undefined,
    options: WaitOptions = {},
  ): Promise<WaitResult> {
    checkIds(named)
    if (this.#isSuspended()) return this.#hang()
    const shown = cutText(named?.join() ?? '', MAX_KEY_CHARS)
    const ids = named ?? children.ids()
    const { clock } = this.#registry
    const { mode, timeoutMs } = options
    const step = this.#begin({
      key: this.#keyOf(`children.waitFor(${shown})`),
      kind: 'children',
      children: [...ids],
      ...(mode === 'any' && { isAny: true }),
      ...(typeof timeoutMs === 'number' && { dueAt: clock.now() + timeoutMs, forMs: timeoutMs }),
    })
    if (step.endedAt !== undefined) return replay(step) as WaitResult
    const { key, dueAt, forMs = Infinity } = step
    const left = dueAt === undefined ? undefined : { timeoutMs: Math.min(Math.max(dueAt - clock.now(), 0), forMs) }
    const owner = ownerOfRun(this.#entry.record.id)
    try {
      this.#idle()
      const take: Pick<WordedWaitOptions, 'onSettled' | 'hold'> = {
        onSettled: (settled, pending) => {
          // The wait has ended because the process ends. Its step stays open for the next run.
          if (this.#isSuspended()) throw new DisposedError()
          const known = new Set([...settled, ...pending].map(({ id }) => id))
          const result = {
            settled: settled.map(storedRecord),
            pending: pending.map(storedRecord),
            unknown: ids.filter((id) => !known.has(id)),
          }
          this.#log.end(key, toResult(result, key))
          // If the results are too large for a step, the wait fails and the results stay owed.
          const { failure } = this.#log.get(key) ?? step
          if (failure !== undefined) throw stepError(failure)
          return settled
        },
        hold: ({ acknowledge }) => {
          acknowledge()
          this.#registry.persistence?.confirmOwner(owner)
        },
      }
      await children.waitFor(ids, { ...options, ...left, ...take })
      await this.#work()
      return replay(this.#log.get(key) ?? step) as WaitResult
    } catch (error) {
      if (this.#isSuspended()) return await this.#hang()
      throw error
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

  /** Ends the steps of questions that are no longer open, for example because the deadline of the task has passed. */
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

  /** Ends the use of steps by this run. Open promises never settle: a rejection might have no handler any more. */
  close(): void {
    if (stepRuns.get(this.#entry) === this) stepRuns.take(this.#entry)
    this.#host.signal.removeEventListener('abort', this.#onAbort)
    this.#endPending()
  }

  async #wait(step: NewStep): Promise<unknown> {
    const begun = this.#begin(step)
    return this.#await(begun, () => this.#feature.wait(this.#entry, begun))
  }

  /** @param start begins the wait for the end of the step */
  async #await(begun: Step, start: () => void): Promise<unknown> {
    if (begun.endedAt !== undefined) return replay(begun)
    const { key } = begun
    await this.#promise((resolve) => {
      this.#waiting.set(key, resolve)
      this.#registry.batch(() => {
        start()
        // The step has already ended if its event had arrived before.
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

  /** Checks the order of steps: among the stored steps that no other step overlapped, this step must be the next. */
  #checkOrder(step: NewStep): void {
    let next = this.#log.at(this.#place)
    while (next !== undefined && (next.overlaps || this.#requested.has(next.key))) {
      next = this.#log.at((this.#place += 1))
    }
    if (next !== undefined && next.key !== step.key) throw stepsChanged(next, step)
  }

  /**
   * Returns the key of a step. A call inside another step is refused, and its name is not counted. Otherwise the keys would differ in a later run,
   * which receives the stored result of the outer step and does not make the call.
   */
  #keyOf(name: string): string {
    if (workOf?.getStore() === this) {
      throw new AgentTasksError('STEP_NESTED', `${name} was called inside a step. Steps cannot be nested.`)
    }
    const isOpen = [...this.#open.keys()].some((key) => key === name || key.startsWith(`${name}#`))
    if (isOpen) throw new InvalidInputError('name', name, 'a name other than that of a step that is still open')
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
        // If the run was aborted, the step has not failed by itself. It stays open for the next run.
        if (this.#isSuspended()) return this.#hang()
        if (signal.aborted || !this.#host.isCurrent()) throw reason
        if (attempt >= attempts) return { end: { failure: toStepFailure(reason) }, reason }
        await this.#pause(backoffMs(backoff, attempt, this.#entry.record.id))
      }
    }
  }

  async #inStep<T>(work: () => T | Promise<T>): Promise<T> {
    this.#working += 1
    try {
      if (!isNode) return await work()
      workOf ??= new (nodeBuiltin('node:async_hooks').AsyncLocalStorage)<StepsOfRun>()
      return await workOf.run(this, work)
    } finally {
      this.#working -= 1
    }
  }

  #end(key: string, end: StepEnd): void {
    if (!this.#host.isCurrent() || this.#entry.ref === undefined) throw overError(this.#entry)
    this.#registry.batch(() => this.#log.end(key, end))
  }

  /** Notifies the registry that the run is waiting, if all of its open steps are waits. */
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
   * Creates a promise that rejects when the run must stop. If nobody awaits the promise, that causes no unhandled rejection.
   * @param end clean-up that is called if the run ends before the promise resolves
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

/** Returns the result of an ended step, or throws its failure. */
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
  new AgentTasksError('RUN_ENDED', `This run of task ${id} has ended and can have no more steps.`)
