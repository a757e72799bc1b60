/** The worker's side of a run. It writes the updates of the run to Redis in order, and reads there what the host has sent. */
import type { Redis } from 'ioredis'
import type { OutputObject, TaskAnswer } from '../../machines/records.js'
import { isSuspension, suspension } from '../async-tasks/cancel-reason.js'
import { Inbox } from '../features/questions/inbox.js'
import { systemClock } from '../system/clock.js'
import { isolateAbortListeners } from '../isolation/isolated-signal.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { reportMethods } from '../engine/report-methods.js'
import type { ResolvedRunner, RunContext } from '../engine/runner.js'
import { AgentTasksError, FamilyError, InvalidInputError, QuestionWithdrawnError } from '../errors.js'
import { spendSchema, type SpentAmount } from '../protocol/budget.js'
import { jsonBytes } from '../data/json-size.js'
import { describeFailure, toOutput } from '../protocol/outcomes.js'
import { parseInput } from '../protocol/parse.js'
import { toPlainData } from '../data/plain-data.js'
import { taskAnswerSchema, taskQuestionSchema, type TaskQuestionInput } from '../protocol/task-questions.js'
import type { SubagentRequest } from '../tools/subagents.js'
import { createBackoff } from './backoff.js'
import type { LogFailure } from './failure-log.js'
import { RETENTION_SECONDS, type JobKeys } from './job-keys.js'
import { BEGIN_RUN, KEEP_LOCK, TAKE, WRITE } from './job-scripts.js'
import { ENTRY_BYTES, Outgoing } from './outgoing.js'
import { runScript } from './script.js'
import {
  interruptedError,
  parseOrUndefined,
  stoppedError,
  toReturnValue,
  toRunInput,
  writeFailure,
  type JobData,
} from './wire.js'

/** The limit for unwritten output in the worker, and for unread output in Redis, in bytes (1 MiB each). */
const MAX_UP_BYTES = 1024 * 1024

/** The maximum size of one write, in bytes (256 KiB). */
const WRITE_BYTES = 256 * 1024

/** The maximum number of open questions of a run, and the maximum size of one question, in bytes of JSON. */
const MAX_QUESTIONS = { open: 16, bytes: 65_536 } as const

/** The first wait before the worker repeats a write that Redis refused, in ms. Redis refuses writes when it is out of memory, for example. */
const WRITE_AGAIN_MS = 1000

export interface WorkerRunOptions {
  readonly redis: Redis
  readonly keys: JobKeys
  /** The token with which the worker holds the lock of the job. */
  readonly token: string
  /** How long the lock lasts after each renewal, in ms. */
  readonly lockMs: number
  readonly data: JobData
  readonly log: (line: string) => void
  readonly logFailure: LogFailure
}

/** What the host has sent: the reason of a cancellation, the reason to wrap up early, answers (number, text, number, text, …), and messages. */
type News = readonly [
  cancel: string | null,
  wrapUp: string | null,
  answers: readonly string[],
  messages: readonly (readonly [id: string, fields: readonly string[]])[],
]

interface OpenQuestion {
  readonly resolve: (answer: TaskAnswer) => void
  readonly reject: (reason: Error) => void
}

export class WorkerRun {
  readonly #options: WorkerRunOptions
  readonly #abort = new AbortController()
  readonly #wrapUp = new AbortController()
  readonly #outgoing = new Outgoing(MAX_UP_BYTES)
  readonly #inbox = new Inbox()
  readonly #questions = new Map<number, OpenQuestion>()
  #asked = 0
  /** When the lock was last known to be fresh: right before it was renewed. */
  #begunAt = performance.now()
  #spent: Record<string, number> = {}
  #lastMessage = '0-0'
  #isInboxFull = false
  #hasBegun = false
  #hasEnded = false
  /** Whether the worker still holds the lock of the job, as far as it knows. */
  #isCurrent = true
  #writing: Promise<void> | undefined
  #writes = 0
  #taking: Promise<void> | undefined
  #takeAgain = false

  constructor(options: WorkerRunOptions) {
    this.#options = options
    const report = (error: unknown): void =>
      options.log(`A listener of an AbortSignal threw an error: ${describeFailure(error)}`)
    isolateAbortListeners(this.#abort.signal, report)
    isolateAbortListeners(this.#wrapUp.signal, report)
  }

  /** Runs the task until it ends. When the task fails, writes the details of the failure to Redis and rejects with its message. */
  async run(runner: ResolvedRunner<SubagentRequest>): Promise<OutputObject> {
    try {
      const input = toRunInput(this.#options.data)
      const context = this.#context(runner)
      await this.#begin()
      const value = await new Promise((done) => done(runner.run(input, context)))
      const output = toReturnValue(value)
      // An empty output says only that the run has stopped.
      if (isSuspension(this.#abort.signal) && Object.keys(output).length === 0) throw stoppedError()
      await this.#end()
      return output
    } catch (error) {
      const reason = isSuspension(this.#abort.signal) ? stoppedError() : error
      this.#outgoing.set('failure', writeFailure(reason))
      this.#write()
      await this.#end()
      throw new Error(describeFailure(reason), { cause: error })
    }
  }

  abort(reason: unknown): void {
    this.#abort.abort(reason)
  }

  /**
   * Asks the run to stop, because its worker is being closed. What it returns completes its task; otherwise it was interrupted. That is written at
   * once, so that it is known even if the worker does not live until the end of the run.
   */
  suspend(): void {
    if (this.#abort.signal.aborted) return
    this.#send(() => this.#outgoing.set('failure', writeFailure(stoppedError())))
    this.abort(suspension())
  }

  /** Takes the lock again if it has expired, for example during an outage of Redis. If the job was failed meanwhile, stops the run. Never rejects. */
  async keepLock(): Promise<void> {
    const { redis, keys, token, lockMs, logFailure } = this.#options
    const { queue, id } = keys
    try {
      if ((await runScript(redis, KEEP_LOCK, {}, { queue, id, token, lockMs })) !== 1) this.#loseLock()
    } catch (error) {
      // The next write takes the lock again, or the end of the run does.
      logFailure('lock', `Task ${this.#options.data.input.id}: the lock cannot be renewed`, error)
    }
  }

  /** Stops the run, because the job belongs to another worker, has ended, or does not exist. Later updates of the run are dropped. */
  #loseLock(): void {
    if (!this.#isCurrent || this.#hasEnded) return
    this.#isCurrent = false
    const { data, log } = this.#options
    log(
      `Task ${data.input.id}: the worker lost the lock of this job, because it had no connection to Redis for too long, or because Redis has lost the job. The run is stopped, and its result is discarded.`,
    )
    this.abort(
      interruptedError(
        'The worker lost the lock of this job: it had no connection to Redis for too long, or Redis has lost the job.',
      ),
    )
  }

  /** Reads what the host has sent. If the task was cancelled, or the job was failed, before this worker fetched it, the run does not start. */
  async #begin(): Promise<void> {
    const { redis, keys, token, lockMs } = this.#options
    const { queue, id, agent, down } = keys
    this.#begunAt = performance.now()
    const answer = await runScript(redis, BEGIN_RUN, { agent, down }, { queue, id, token, lockMs })
    this.#hasBegun = true
    if (answer === null) this.#loseLock()
    else this.#hear(answer as News)
    this.#abort.signal.throwIfAborted()
    if (this.#takeAgain) this.wake()
  }

  /** Reads what the host has sent. Never rejects. */
  wake(): void {
    if (this.#hasEnded) return
    if (!this.#hasBegun || this.#taking !== undefined) {
      this.#takeAgain = true
      return
    }
    this.#takeAgain = false
    this.#taking = this.#take()
      .catch((error: unknown) =>
        this.#options.logFailure(
          'take',
          `Task ${this.#options.data.input.id}: messages of its host cannot be read`,
          error,
        ),
      )
      .finally(() => {
        this.#taking = undefined
        if (this.#takeAgain) this.wake()
      })
  }

  async #take(): Promise<void> {
    const { redis, keys } = this.#options
    const { agent, down } = keys
    this.#hear((await runScript(redis, TAKE, { agent, down }, { after: this.#lastMessage })) as News)
  }

  #hear([cancel, wrapUp, answers, messages]: News): void {
    if (this.#hasEnded) return
    if (cancel !== null) this.abort(cancel === '' ? undefined : new DOMException(cancel, 'AbortError'))
    if (wrapUp !== null) {
      this.#wrapUp.abort(Object.assign(new Error(wrapUp), { name: 'BudgetExceededError', code: 'BUDGET_EXCEEDED' }))
    }
    for (let at = 0; at < answers.length; at += 2) this.#answer(Number(answers[at]), answers[at + 1] ?? '')
    this.#isInboxFull = false
    for (const [id, [, text = '']] of messages) {
      if (this.#inbox.accept(text) === 'full') {
        this.#isInboxFull = true
        return
      }
      this.#lastMessage = id
    }
  }

  #answer(number: number, json: string): void {
    const question = this.#questions.get(number)
    this.#send(() => this.#outgoing.delete(`a:${number}`))
    if (question === undefined) return
    this.#questions.delete(number)
    const answer = taskAnswerSchema().safeParse(parseOrUndefined(json))
    if (answer.success) question.resolve(Object.freeze(answer.data) as TaskAnswer)
    else question.reject(new QuestionWithdrawnError(this.#options.data.input.id))
  }

  #context({ takesMessages = false }: ResolvedRunner<SubagentRequest>): RunContext {
    const { data } = this.#options
    const { id } = data.input
    const noFamily = (): never => {
      throw new FamilyError('PARENT_ENDED', id, `Task ${id} runs on a worker, and runs on workers cannot launch tasks.`)
    }
    const noSteps = (): Promise<never> =>
      Promise.reject(
        new AgentTasksError('NO_STEPS', `Task ${id} runs on a worker, and runs on workers cannot use durable steps.`),
      )
    return {
      signal: this.#abort.signal,
      wrapUp: this.#wrapUp.signal,
      taskId: id,
      owner: data.owner,
      attempt: data.attempt,
      ...omitUndefined({ trace: data.trace }),
      // A worker has no store that records the programs of a run. They are ended when this process dies.
      durability: {
        folder: undefined,
        key: undefined,
        isResumed: false,
        startedAt: systemClock.now(),
        saveProgram: () => Promise.resolve(),
      },
      ...reportMethods((field, value) =>
        this.#send(() => this.#outgoing.report(field, JSON.stringify(toPlainData(value)))),
      ),
      append: (text) => this.#send(() => this.#outgoing.append(text)),
      spend: (amount) => this.#spend(amount),
      offer: (output) =>
        this.#send(() => this.#outgoing.report('offer', JSON.stringify(toPlainData(toOutput(output))))),
      ask: (question, options) => this.#ask(question, options?.signal),
      setSession: () => undefined,
      messages: takesMessages ? this.#messages() : new Inbox().open(),
      step: noSteps,
      sleep: noSteps,
      waitFor: noSteps,
      launch: noFamily,
      children: {
        ids: () => [],
        waitFor: (ids = []) => Promise.resolve({ settled: [], pending: [], unknown: ids }),
        cancel: () => false,
      },
    }
  }

  #messages(): AsyncIterable<string> {
    const iterator = this.#inbox.open()[Symbol.asyncIterator]()
    const next = (): Promise<IteratorResult<string>> => {
      // The run has taken a message, so messages that did not fit before can be read now.
      if (this.#isInboxFull) this.wake()
      return iterator.next()
    }
    const taken = {
      next,
      return: () => iterator.return?.() ?? Promise.resolve({ done: true as const, value: undefined }),
    }
    return { [Symbol.asyncIterator]: () => taken }
  }

  #spend(amount: SpentAmount): void {
    const spent = parseInput(spendSchema(), amount, 'amount')
    for (const [kind, more] of Object.entries(spent)) this.#spent[kind] = (this.#spent[kind] ?? 0) + (more ?? 0)
    this.#send(() => this.#outgoing.set('spent', JSON.stringify(this.#spent)))
  }

  #ask(input: TaskQuestionInput, signal: AbortSignal | undefined): Promise<TaskAnswer> {
    const asked = new Promise<TaskAnswer>((resolve, reject) => {
      const question = parseInput(taskQuestionSchema(), input, 'question')
      signal?.throwIfAborted()
      if (jsonBytes(question) > MAX_QUESTIONS.bytes) {
        throw new InvalidInputError(
          'question',
          '(too large to be shown)',
          `at most ${MAX_QUESTIONS.bytes} bytes of JSON`,
        )
      }
      if (this.#questions.size >= MAX_QUESTIONS.open) {
        throw new AgentTasksError(
          'TOO_MANY_QUESTIONS',
          `This run already has ${MAX_QUESTIONS.open} open questions, which is the maximum. Wait for an answer before you ask again.`,
        )
      }
      const { id } = this.#options.data.input
      if (this.#hasEnded || !this.#isCurrent) throw new QuestionWithdrawnError(id)
      const number = (this.#asked += 1)
      const withdraw = (): void => {
        if (!this.#questions.delete(number)) return
        this.#send(() => this.#outgoing.delete(`q:${number}`))
        reject(new QuestionWithdrawnError(id))
      }
      const done = (): void => signal?.removeEventListener('abort', withdraw)
      this.#questions.set(number, {
        resolve: (answer) => {
          done()
          resolve(answer)
        },
        reject: (reason) => {
          done()
          reject(reason)
        },
      })
      signal?.addEventListener('abort', withdraw, { once: true })
      this.#send(() => this.#outgoing.set(`q:${number}`, JSON.stringify(question)))
    })
    // Without this handler, a withdrawn question would end the process if the run does not await its answer.
    asked.catch(() => undefined)
    return asked
  }

  get #hasUnwritten(): boolean {
    return this.#writing !== undefined || !this.#outgoing.isEmpty
  }

  #send(add: () => void): void {
    if (this.#hasEnded || !this.#isCurrent) return
    add()
    this.#write()
  }

  #write(): void {
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined))
  }

  async #writeAll(): Promise<void> {
    const { redis, keys, token, lockMs, data, logFailure } = this.#options
    const backoff = createBackoff(WRITE_AGAIN_MS)
    while (!this.#outgoing.isEmpty && this.#isCurrent) {
      // Waits for the end of the tick, so that all updates of this tick become one write.
      await Promise.resolve()
      const items = this.#outgoing.take(WRITE_BYTES)
      const said = items.flatMap(({ what, name, text }) => [what, name, text])
      const args = {
        queue: keys.queue,
        id: keys.id,
        token,
        lockMs,
        host: data.host,
        keptSeconds: RETENTION_SECONDS,
        mostBytes: MAX_UP_BYTES,
        entryBytes: ENTRY_BYTES,
        write: `${token}:${(this.#writes += 1)}`,
      }
      for (let isWritten = false; !isWritten;) {
        try {
          const isCurrent = await runScript(redis, WRITE, { agent: keys.agent, up: keys.up }, args, said)
          isWritten = true
          backoff.reset()
          if (isCurrent !== 1) this.#loseLock()
        } catch (error) {
          if (redis.status === 'end') return
          logFailure('write', `Task ${data.input.id}: output or progress cannot be written to Redis`, error)
          await backoff.wait()
        }
      }
    }
  }

  /** Writes the remaining updates. Later ones are dropped. */
  async #end(): Promise<void> {
    while (this.#hasUnwritten && this.#isCurrent && this.#options.redis.status !== 'end') {
      this.#write()
      await this.#writing
    }
    // BullMQ renews the lock at half of its duration. An earlier end needs no check, because the lock cannot have expired.
    if (performance.now() - this.#begunAt > this.#options.lockMs / 2) await this.keepLock()
    this.#hasEnded = true
    this.#inbox.close()
    const { id } = this.#options.data.input
    for (const question of this.#questions.values()) question.reject(new QuestionWithdrawnError(id))
    this.#questions.clear()
  }
}
