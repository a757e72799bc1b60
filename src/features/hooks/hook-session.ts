/**
 * The deliveries to one conversation of a client through its hooks.
 *
 * A call of a hook leases what is owed, and never confirms it by itself, because every process of the user can make such a call. What proves that the
 * model has a text:
 *
 * 1. The transcript of the client has its delivery id where a resumed conversation gives it to the model again.
 * 2. A later prompt is the text, or contains its delivery id.
 * 3. The text was the answer to the call just before this one, and this call ends the turn that the answer began or continued. Others can make such calls
 *    as well. So this counts only if hooks come over the connection of the client, which keeps no transcript; and for a message that was not proven three
 *    times in a row, which would come at the end of each turn otherwise.
 *
 * What is not proven when the next turn begins is owed again, as a possible repeat.
 */
import type { LeasedReminder } from '../delivery/reminder-service.js'
import { isOwing } from '../delivery/leases.js'
import { registryOf, type AsyncTaskManager } from '../../async-tasks/manager.js'
import { whenAborted } from '../../system/abort.js'
import { clearLongTimeout, setLongTimeout } from '../../system/clock.js'
import type { HookCall, HookClient, HookEvent } from './hook-client.js'
import { hookDeliveries } from './hook-deliveries.js'
import { deliveryIdLine, earlierLine, lastCallText, stillRunningText } from './hook-texts.js'

export interface HookSessionOptions {
  readonly manager: AsyncTaskManager
  /** Leases what is owed to the owner. */
  readonly lease: () => LeasedReminder | undefined
  readonly owner: string
  readonly client: HookClient
  /** Whether the client ends its process with the last turn. */
  readonly isHeadless: () => boolean
  /** Whether the conversation has a text with this token (`isInTranscript`). */
  readonly isInTranscript: (path: string | undefined, token: string) => boolean
  /** Whether this is a transcript of the client (`isTranscript`). */
  readonly isTranscript: (path: string | undefined) => boolean
  /** Whether tasks go on when the process of the client has ended. */
  readonly hasStore: boolean
}

/** What a hook is answered. */
export interface HookAnswer {
  /** The text for the model; undefined if there is nothing to say. */
  readonly text: string | undefined
  /** Says whether the answer was written to the client. */
  readonly end: (isWritten: boolean) => void
}

/** A message whose arrival is not proven. */
interface Unproven {
  readonly message: LeasedReminder
  readonly event: HookEvent
}

const NOTHING: HookAnswer = { text: undefined, end: () => undefined }

/** Signals abort during a wait, which TypeScript does not expect of a property. */
const hasAborted = (signal: AbortSignal): boolean => signal.aborted

/** How often in a row a message may not be proven in a conversation with a transcript. */
const MAX_MISSED = 3

/** How many continuations are left when a session begins to save them. */
const SAVING = 2

export class HookSession {
  readonly #options: HookSessionOptions
  /** The id of the conversation; undefined until a call names it. */
  #id: string | undefined
  #unproven: Unproven | undefined
  /** The call that waits. Only the newest one does. */
  #waiting: AbortController | undefined
  /** How often a hook has continued the turn since the last call of a tool. */
  #continuations = 0
  #isIdle = false
  /** Whether a call has named a transcript. */
  #hasTranscript = false
  /** The message that was not proven last, and how often in a row. */
  #missed = { deliveryId: '', times: 0 }
  /** Tasks that an earlier conversation of the same connection has launched. */
  #earlier: ReadonlySet<string> = new Set()

  constructor(options: HookSessionOptions, id?: string) {
    this.#options = options
    this.#id = id
  }

  get id(): string | undefined {
    return this.#id
  }

  /** The model has called a tool. */
  toolCalled(): void {
    this.#continuations = 0
    this.#isIdle = false
  }

  /** Answers a call of a hook. The signal aborts when the client takes the call back. */
  answer(call: HookCall, signal: AbortSignal): Promise<HookAnswer> {
    this.#hasTranscript ||= this.#options.isTranscript(call.transcriptPath)
    switch (call.event) {
      case 'start':
        this.#switchTo(call.sessionId)
        return Promise.resolve(NOTHING)
      case 'prompt':
        this.#switchTo(call.sessionId)
        return this.#prompt(call, signal)
      case 'stop':
        return this.#isOther(call.sessionId) ? Promise.resolve(NOTHING) : this.#stop(call, signal)
      case 'wake':
        return this.#isOther(call.sessionId) ? Promise.resolve(NOTHING) : this.#wake(call, signal)
    }
  }

  /** Resolves to true when something is owed while the client is idle, and to false when a turn begins before that. */
  async isOwedWhileIdle(): Promise<boolean> {
    if (!this.#isIdle) return false
    const isOver = this.#beginWait()
    const isDue = (): boolean => this.#isIdle && this.#isOwed() && !this.#hasUnproven()
    await this.#until(isDue, Infinity, isOver)
    return !isOver.aborted && isDue()
  }

  /** Ends the wait of a call. What is not proven stays leased: the next process looks for it in the transcript. */
  close(): void {
    this.#waiting?.abort()
  }

  /** Forgets the conversation: what is not proven is owed again. */
  end(): void {
    this.close()
    this.#release()
  }

  #isOther(id: string | undefined): boolean {
    if (this.#id === undefined) this.#id = id
    return id !== undefined && id !== this.#id
  }

  /** Another conversation of the client goes on with the tasks of this one. */
  #switchTo(id: string | undefined): void {
    if (id === undefined || id === this.#id) return
    if (this.#id !== undefined) {
      this.#waiting?.abort()
      this.#release()
      this.#continuations = 0
      const { manager, owner } = this.#options
      const all = manager.getAllTasks().filter((task) => task.owner === owner && task.delivery !== 'delivered')
      this.#earlier = new Set(all.map((task) => task.id))
    }
    this.#id = id
  }

  async #prompt(call: HookCall, signal: AbortSignal): Promise<HookAnswer> {
    this.#waiting?.abort()
    this.#isIdle = false
    const { prompt = '' } = call
    const message = this.#unproven?.message
    if (message !== undefined && prompt.includes(message.deliveryId)) {
      this.#prove()
      return NOTHING
    }
    // Qwen Code also calls the hook, with an empty prompt, when the turn goes on after a call of a tool.
    if (prompt === '') return NOTHING
    this.#settle(call)
    // A person has begun a turn.
    this.#continuations = 0
    return this.#options.client.promptAnswer === undefined ? NOTHING : this.#deliver(call, signal)
  }

  async #stop(call: HookCall, signal: AbortSignal): Promise<HookAnswer> {
    this.#settle(call)
    const { client, isHeadless } = this.#options
    const left = (client.maxContinuations ?? Infinity) - this.#continuations
    if (left <= 0) return this.#rest()
    const isOver = this.#beginWait(signal)
    if (isHeadless()) {
      const isDue = left <= SAVING ? () => !this.#isBusy() : () => this.#isOwed() || !this.#isBusy()
      await this.#until(isDue, client.stopMs, isOver)
    }
    if (isOver.aborted) return NOTHING
    const answer = await this.#deliver(call, isOver, left)
    if (answer.text !== undefined) {
      this.#continuations += 1
      return answer
    }
    if (!isHeadless() || !this.#isBusy() || hasAborted(isOver)) return this.#rest()
    this.#continuations += 1
    return { text: stillRunningText(this.#active(), left - 1, this.#options.hasStore), end: () => undefined }
  }

  /** Waits, while the client is idle, until something is owed. */
  async #wake(call: HookCall, signal: AbortSignal): Promise<HookAnswer> {
    if (this.#options.client.wakesIdle !== true || this.#options.isHeadless()) return NOTHING
    const isOver = this.#beginWait(signal)
    this.#isIdle = true
    await this.#until(() => this.#isIdle && this.#isOwed() && this.#unproven === undefined, Infinity, isOver)
    return isOver.aborted ? NOTHING : this.#deliver(call, isOver)
  }

  #rest(): HookAnswer {
    this.#isIdle = true
    return NOTHING
  }

  /** The newest call waits. Returns a signal that aborts when it must not be answered any more. */
  #beginWait(signal?: AbortSignal): AbortSignal {
    this.#waiting?.abort()
    this.#waiting = new AbortController()
    return signal === undefined ? this.#waiting.signal : AbortSignal.any([signal, this.#waiting.signal])
  }

  /** Leases what is owed, and returns its text. */
  async #deliver(call: HookCall, signal: AbortSignal, left = Infinity): Promise<HookAnswer> {
    if (signal.aborted || this.#hasUnproven()) return NOTHING
    const { manager, client, lease } = this.#options
    const message = lease()
    if (message === undefined) return NOTHING
    const { deliveryId } = message
    if (call.transcriptPath !== undefined) {
      const place = { client: client.name, transcriptPath: call.transcriptPath }
      manager.reads.use(hookDeliveries).sent(deliveryId, place)
    }
    try {
      await message.stored
    } catch {
      // It was reported, and is owed again.
      manager.reads.use(hookDeliveries).settled(deliveryId)
      return NOTHING
    }
    // Another call may have leased something meanwhile. What follows could prove only one of them.
    if (hasAborted(signal) || this.#hasUnproven()) {
      this.#dropped(message)
      return NOTHING
    }
    this.#unproven = { message, event: call.event }
    this.#isIdle = false
    return {
      text: this.#textOf(message, left - 1),
      end: (isWritten) => {
        if (isWritten || this.#unproven?.message !== message) return
        this.#unproven = undefined
        this.#dropped(message)
      },
    }
  }

  #hasUnproven(): boolean {
    return this.#unproven !== undefined
  }

  #textOf({ text, deliveryId, taskIds }: LeasedReminder, left: number): string {
    const earlier = taskIds.filter((id) => this.#earlier.has(id))
    const lines = [
      ...(earlier.length > 0 ? [earlierLine(earlier)] : []),
      ...(left <= 0 && this.#isBusy() ? [lastCallText(this.#active(), this.#options.hasStore)] : []),
      ...(text.includes(deliveryId) ? [] : [deliveryIdLine(deliveryId)]),
    ]
    return [text, ...lines].join('\n')
  }

  /** Decides what has become of the last message. */
  #settle(call: HookCall): void {
    const last = this.#unproven
    if (last === undefined) return
    const { message, event } = last
    const isSameTurn = call.event === 'stop' && (event === 'prompt' || (event === 'stop' && call.isContinued === true))
    const { deliveryId } = message
    const { hooksCallTools } = this.#options.client
    const times = this.#missed.deliveryId === deliveryId ? this.#missed.times : 0
    const isProven =
      this.#options.isInTranscript(call.transcriptPath, deliveryId) ||
      (isSameTurn && (times >= MAX_MISSED || (hooksCallTools === true && !this.#hasTranscript)))
    this.#missed = { deliveryId, times: times + 1 }
    if (isProven) this.#prove()
    else this.#release()
  }

  #prove(): void {
    const message = this.#unproven?.message
    if (message === undefined) return
    const { manager } = this.#options
    this.#unproven = undefined
    // One write has both, so that no crash comes between them.
    manager.reads.batch(() => {
      message.acknowledge()
      manager.confirm(message.deliveryId)
      manager.reads.use(hookDeliveries).settled(message.deliveryId)
    })
  }

  #release(): void {
    const message = this.#unproven?.message
    if (message === undefined) return
    this.#unproven = undefined
    message.release({ mayHaveArrived: true })
    this.#options.manager.reads.use(hookDeliveries).settled(message.deliveryId)
  }

  /** The message was not written to the client. */
  #dropped(message: LeasedReminder): void {
    message.release()
    this.#options.manager.reads.use(hookDeliveries).settled(message.deliveryId)
  }

  #isOwed(): boolean {
    const { manager, owner } = this.#options
    return isOwing(registryOf(manager), owner)
  }

  #isBusy(): boolean {
    const { manager, owner } = this.#options
    const { ledger } = manager.reads
    return ledger.countOf('running', owner) + ledger.countOf('queued', owner) > 0
  }

  #active(): readonly string[] {
    const { manager, owner } = this.#options
    return manager.getActiveTasks(owner).map(({ id }) => id)
  }

  /** Resolves when the condition holds, after `ms`, when the signal aborts, or when the manager is disposed. */
  #until(isDue: () => boolean, ms: number, signal: AbortSignal): Promise<void> {
    const { clock, notifications$, isDisposed } = this.#options.manager.reads
    if (isDue() || signal.aborted || isDisposed) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        unlisten()
        subscription.unsubscribe()
        clearLongTimeout(clock, timer)
        resolve()
      }
      const look = (): void => {
        if (isDue()) end()
      }
      const timer = setLongTimeout(clock, end, ms, { name: 'limit of a hook', kind: 'deadline' })
      const subscription = notifications$.subscribe({ next: look, complete: end })
      const unlisten = whenAborted(signal, end)
    })
  }
}
