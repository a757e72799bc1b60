/**
 * The host's side of a run on a worker. The host reads all updates from Redis at intervals. A pub/sub message only makes the next read happen
 * earlier.
 */
import { RECORD_FIELDS, REPORTED_FIELDS } from '../../machines/record-fields.js'
import type { OutputObject, TaskAnswer } from '../../machines/records.js'
import { whenAborted } from '../system/abort.js'
import { systemClock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { RunContext, RunInput } from '../engine/runner.js'
import { messageOf } from '../protocol/outcomes.js'
import type { TaskQuestionInput } from '../protocol/task-questions.js'
import { MAX_WAITING_BYTES, MAX_WAITING_MESSAGES, NO_MESSAGES } from '../features/questions/inbox.js'
import { createBackoff } from './backoff.js'
import type { LogFailure } from './failure-log.js'
import type { HostLink } from './host-link.js'
import { RETENTION_SECONDS } from './job-keys.js'
import { LOOK, TELL } from './job-scripts.js'
import { interruptedError, parseOrUndefined, readFailure, readReturnValue, toJobData, WORKER_DIED } from './wire.js'

/** The maximum number of stream entries in one read. */
const ENTRIES = 64

/** How long a host follows an aborted run while Redis cannot be reached, in ms. After that its task ends with an error. */
const ABORTED_MS = 60_000

/** The first and the longest wait before the host repeats a message that Redis did not accept, in ms. */
const TELL_AGAIN_MS = { first: 200, most: 2000 } as const

/** The state and the updates of a run, as one read returns them. */
interface Look {
  readonly state: string
  readonly end: string
  readonly failure: string
  readonly entries: readonly [id: string, fields: readonly string[]][]
  readonly questions: readonly string[]
  readonly spent: string
  readonly seen: string
}

export interface RemoteRunOptions {
  readonly link: HostLink
  readonly jobId: string
  /** The pub/sub channel of the workers of this queue. */
  readonly workers: string
  readonly input: RunInput
  readonly context: RunContext
  readonly logFailure: LogFailure
}

type Tell = readonly [what: 'message' | 'answer' | 'wrapUp', number: string, text: string]

/** Sends a run to the workers and follows it until it ends. A run that an earlier process has sent is not sent again. */
export async function followRun(options: RemoteRunOptions): Promise<OutputObject> {
  return new RemoteRun(options).toEnd()
}

class RemoteRun {
  readonly #options: RemoteRunOptions
  readonly #asked = new Map<string, AbortController>()
  #cursor = '0-0'
  /** The spent amounts (such as tokens) that were added to the task. Undefined until Redis shows what an earlier process has added. */
  #seen: Record<string, number> | undefined
  /** `#seen` as JSON, which the next read stores in Redis for the next process. Empty when nothing was added. */
  #toStore = ''
  #isCancelStored = false
  #cancelledAt: number | undefined
  #wake: (() => void) | undefined
  #isAwake = false
  /** The output as JSON, if the pub/sub message about the end contained it. */
  #output: string | undefined
  #hasEnded = false

  constructor(options: RemoteRunOptions) {
    this.#options = options
  }

  async toEnd(): Promise<OutputObject> {
    const { link, jobId, context } = this.#options
    const { signal, durability } = context
    const wake = (output?: string): void => {
      this.#output ??= output
      this.#isAwake = true
      this.#wake?.()
    }
    const onAbort = (): void => {
      this.#cancelledAt = performance.now()
      wake()
    }
    const { left } = durability ?? {}
    const { wrapUp } = context
    const concludes = (): void => void this.#tell(['wrapUp', '', messageOf(wrapUp.reason) ?? ''])
    link.join(jobId, wake)
    const stopListening = [whenAborted(signal, onAbort)]
    const free = (): void => {
      this.#hasEnded = true
      for (const stop of stopListening) stop()
      link.leave(jobId)
    }
    // The next process follows the job. This run waits for ever, because its task has not ended.
    stopListening.push(whenAborted(left, free))
    try {
      if (durability?.isResumed !== true) {
        this.#seen = {}
        await this.#send()
      }
      let isNew = durability?.isResumed !== true && !signal.aborted
      stopListening.push(whenAborted(wrapUp, concludes))
      void this.#forwardMessages()
      for (;;) {
        if (left?.aborted === true) await new Promise(() => undefined)
        // A job that was just sent has no updates yet.
        if (isNew) await this.#waitForUpdates()
        isNew = false
        if (this.#output !== undefined) return this.#read({ state: 'completed', end: this.#output, failure: '' })
        this.#isAwake = false
        const look = await this.#pass()
        // What was read after the end of this process's use is read again by the next one.
        if (left?.aborted === true) continue
        if (look !== undefined && isEnd(look) && look.entries.length < ENTRIES) return this.#read(look)
        if (look === undefined || look.entries.length < ENTRIES) await this.#waitForUpdates()
      }
    } finally {
      free()
      for (const question of this.#asked.values()) question.abort()
    }
  }

  #send(): Promise<void> {
    const { link, jobId, input, context } = this.#options
    const { owner, attempt, trace, signal } = context
    const data = toJobData(input, { owner, attempt, host: link.channel, ...omitUndefined({ trace }) })
    return link.send(jobId, data, signal)
  }

  /**
   * Reads the run once and applies its updates. Returns undefined when there is nothing to apply: Redis does not answer, or the job was failed or
   * sent again.
   */
  async #pass(): Promise<Look | undefined> {
    const { link, jobId, context, logFailure } = this.#options
    try {
      if (!link.isReady) throw new Error('Redis cannot be reached.')
      if (context.signal.aborted && !this.#isCancelStored) {
        await link.cancel(jobId, messageOf(context.signal.reason) ?? '')
        this.#isCancelStored = true
      }
      const look = await this.#look()
      if (look.state === 'silent' && link.seesDead) {
        await link.giveUp(jobId)
        this.#isAwake = true
        return undefined
      }
      if (look.state === 'missing') {
        if (context.signal.aborted) return { ...look, state: 'failed' }
        await this.#sendAgain()
        return undefined
      }
      this.#apply(look)
      return look
    } catch (error) {
      if (this.#cancelledAt !== undefined && performance.now() - this.#cancelledAt > ABORTED_MS) throw error
      if (!link.isReady) return undefined
      if (error instanceof Error && 'code' in error && ['INTERRUPTED', 'START_FAILED'].includes(String(error.code))) {
        throw error
      }
      logFailure('look', `Job ${jobId} cannot be followed`, error)
      return undefined
    }
  }

  async #look(): Promise<Look> {
    const { link, jobId } = this.#options
    const { queue, agent, up } = link.keysOf(jobId)
    const args = {
      queue,
      id: jobId,
      after: this.#cursor,
      seen: this.#toStore,
      // The job names the channel of the process that sent it. If that was an earlier process, this one stores its own channel.
      host: this.#options.context.durability?.isResumed === true ? link.channel : '',
      keptSeconds: RETENTION_SECONDS,
      mostEntries: ENTRIES,
    }
    const found = (await link.run(LOOK, { agent, up }, args)) as readonly [
      string,
      string?,
      string?,
      Look['entries']?,
      string[]?,
      string?,
      string?,
    ]
    const [state, end = '', failure = '', entries = [], questions = [], spent = '', before = ''] = found
    return { state, end, failure, entries, questions, spent, seen: before }
  }

  /**
   * Handles a job that does not exist. If the previous host process died before it sent the job, the job is sent now. If Redis may have lost or
   * deleted the job, the task fails, because its run may have had effects.
   */
  async #sendAgain(): Promise<void> {
    const { durability } = this.#options.context
    const isOld = durability === undefined || systemClock.now() - durability.startedAt > RETENTION_SECONDS * 1000
    if (durability?.isResumed !== true || isOld) {
      throw interruptedError(
        'Redis does not have the job of this task any more, so the result is lost. A worker may have run the task, or may still be running it. Launch the task again only if a second execution does no harm.',
      )
    }
    await this.#send()
    this.#isAwake = true
  }

  #apply({ entries, questions, spent, seen }: Look): void {
    const { context } = this.#options
    for (const [id, [what, text = '']] of entries) {
      this.#cursor = id
      if (what === 'output') context.append(text)
      if (what === 'offer') context.offer(parseOrUndefined(text) as OutputObject)
      const field = REPORTED_FIELDS.find((reported) => reported === what)
      if (field !== undefined) context[RECORD_FIELDS[field].method](parseOrUndefined(text) as never)
    }
    this.#seen ??= toSums(seen)
    this.#spend(toSums(spent))
    this.#ask(questions)
  }

  #spend(sums: Record<string, number>): void {
    const before = this.#seen ?? {}
    const more = Object.entries(sums).flatMap(([kind, sum]) => {
      const difference = sum - (before[kind] ?? 0)
      return difference > 0 ? [[kind, difference] as const] : []
    })
    this.#seen = sums
    if (more.length === 0) return
    this.#options.context.spend(Object.fromEntries(more))
    this.#toStore = JSON.stringify(sums)
  }

  #ask(questions: readonly string[]): void {
    const open = new Map<string, string>()
    for (let at = 0; at < questions.length; at += 2) open.set(questions[at] ?? '', questions[at + 1] ?? '')
    for (const [number, controller] of this.#asked) if (!open.has(number)) controller.abort()
    const fresh = [...open].filter(([number]) => !this.#asked.has(number))
    for (const [number, json] of fresh.sort(([a], [b]) => Number(a) - Number(b))) {
      const controller = new AbortController()
      this.#asked.set(number, controller)
      const question = parseOrUndefined(json) as TaskQuestionInput
      this.#options.context.ask(question, { signal: controller.signal }).then(
        (answer: TaskAnswer) => this.#tell(['answer', number, JSON.stringify(answer)]),
        // The question was withdrawn, or nobody will answer it.
        () => this.#tell(['answer', number, '']),
      )
    }
  }

  async #forwardMessages(): Promise<void> {
    const { link, context } = this.#options
    let count = 0
    for await (const message of context.messages) {
      await this.#tell(['message', `${link.channel}:${(count += 1)}`, message])
    }
  }

  /** Sends a message to the run. Repeats it until Redis accepts the message, or the run has ended. */
  async #tell([what, number, text]: Tell): Promise<void> {
    const { link, jobId, workers } = this.#options
    const { queue, agent, down } = link.keysOf(jobId)
    const args = {
      queue,
      id: jobId,
      keptSeconds: RETENTION_SECONDS,
      workers,
      what,
      number,
      text,
      mostEntries: MAX_WAITING_MESSAGES,
      mostBytes: MAX_WAITING_BYTES,
    }
    const backoff = createBackoff(TELL_AGAIN_MS.first, TELL_AGAIN_MS.most)
    while (!this.#hasEnded) {
      try {
        const told = await link.run(TELL, { agent, down }, args)
        if (told !== -1) return
        // The run has not taken its earlier messages yet. Redis itself works.
        backoff.reset()
      } catch {
        // `openConnection` logs connection errors.
      }
      await backoff.wait()
    }
  }

  /** Waits for a pub/sub message, or until the next read is due. */
  async #waitForUpdates(): Promise<void> {
    if (this.#isAwake) return
    await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  #read({ state, end, failure }: Pick<Look, 'state' | 'end' | 'failure'>): OutputObject {
    const { link, jobId } = this.#options
    const { down, up } = link.keysOf(jobId)
    if (this.#cursor !== '0-0') link.letGo([up])
    if (this.#options.context.messages !== NO_MESSAGES) link.letGo([down])
    if (state === 'completed') return readReturnValue(end)
    if (state === 'interrupted') throw interruptedError(WORKER_DIED)
    this.#options.context.signal.throwIfAborted()
    throw readFailure(failure, end)
  }
}

const isEnd = ({ state }: Look): boolean => ['completed', 'failed', 'interrupted'].includes(state)

function toSums(json: string): Record<string, number> {
  const sums = parseOrUndefined(json)
  if (typeof sums !== 'object' || sums === null) return {}
  return Object.fromEntries(
    Object.entries(sums).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  )
}
