/**
 * The conversations of a host. An open conversation is an entry of a map until it has been idle for a while. A result that is owed to a conversation
 * starts a turn of it, also if nobody has opened the conversation since a restart.
 *
 * The file is long, because opening, turns, inputs and rest of a conversation change the same state.
 */
import { filter, firstValueFrom, Subscription } from 'rxjs'
import {
  AsyncTaskAutoTrigger,
  type AutoTriggerOptions,
  type ReminderSource,
} from '../../features/delivery/auto-trigger.js'
import { isOwing } from '../../features/delivery/leases.js'
import { keptTurns, type Input, type KeptTurns, type OpenTurn } from '../../features/kept-turns/kept-turns.js'
import { turnLaunches } from '../../features/kept-turns/turn-launches.js'
import { pushSubscribers } from '../../features/delivery/push-subscribers.js'
import type { AsyncTaskReminderService } from '../../features/delivery/reminder-service.js'
import { wakeUps } from '../../features/delivery/wake-ups.js'
import { visibleTasks } from '../../features/task-ids/task-lookup.js'
import { registryOf, type AsyncTaskManager } from '../../async-tasks/manager.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { currentTurn, type TurnMarker } from '../../isolation/current-turn.js'
import { toOneLine } from '../../data/control-characters.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { elapsedMs, withTimeLimit } from '../../system/clock.js'
import { AgentTasksError, DisposedError, InvalidInputError } from '../../errors.js'
import { runOfOwner } from '../../../machines/run-owner.js'
import {
  accepts,
  aFunction,
  aName,
  anAbortSignal,
  checkOptions,
  custom,
  integerFrom,
  type OptionTypes,
} from '../../protocol/option-checks.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { AgentTools, OptionalTools } from '../../tools/tool-list.js'
import { createTaskCommands } from '../commands/task-commands.js'
import type { SlashCommand } from '../commands/command.js'
import type { LaunchOptions } from '../launch.js'
import { preview } from '../../data/preview.js'
import { turnQueue } from '../turn-queue.js'
import type {
  Conversation,
  ConversationInfo,
  ConversationOptions,
  ConversationPage,
  ConversationQuery,
  KeptTurn,
  RespondInConversation,
  SendOptions,
} from './conversation.js'

/** What the conversations need of their host. */
export interface ConversationHost {
  readonly manager: AsyncTaskManager
  readonly reminders: AsyncTaskReminderService
  /** Runs the turns of conversations that have no function of their own. */
  readonly respond: RespondInConversation | undefined
  /** Decides about a conversation that nobody has opened and to which a result is owed. */
  readonly openConversation: OpenConversation | undefined
  /** How long a turn that was aborted may take to end, in ms. */
  readonly graceMs: number
  /** How long a conversation may be idle before it is dropped, in ms. */
  readonly idleMs: number
  /** How many turns of each conversation are kept; undefined for the default. */
  readonly keepTurns: number | undefined
  /** Whether the host keeps the messages of its turns itself. */
  readonly keepsMessages: boolean
  readonly autoTrigger: Omit<AutoTriggerOptions, 'owner'> | undefined
  readonly toolsOf: (owner: string) => AgentTools & Partial<OptionalTools>
  readonly launchFor: (owner: string) => Conversation['launch']
}

/**
 * Called when a result is owed to a conversation that is not open. Returns the options of the conversation, or false to leave the result owed until the
 * host opens the conversation.
 */
export type OpenConversation<Answer = unknown> = (id: string) => ConversationOptions<Answer> | false | undefined

const anId = custom(
  'a string with visible text and without control characters',
  (value) => typeof value === 'string' && value.trim() !== '' && toOneLine(value) === value,
)
const conversationOptionTypes: OptionTypes<ConversationOptions> = { respond: aFunction }
const sendOptionTypes: OptionTypes<SendOptions> = { signal: anAbortSignal, id: aName, onStored: aFunction }
const closeOptionTypes: OptionTypes<{ readonly to?: string }> = { to: anId }
const queryTypes: OptionTypes<ConversationQuery> = { after: aName, limit: integerFrom(1) }

/** How many turns of each conversation a store keeps by default. */
const KEPT_TURNS = 100

/** An open conversation. */
interface Open {
  readonly conversation: Conversation
  readonly options: ConversationOptions
  /** When the conversation was last used, in ms of the monotonic clock. */
  usedAt: number
  /** Present while a turn runs or waits, or something is owed. */
  work: Work | undefined
  tools: (AgentTools & Partial<OptionalTools>) | undefined
  commands: readonly SlashCommand[] | undefined
}

/** The turns of a conversation, and the trigger that starts them for results. */
interface Work {
  readonly turns: ReturnType<typeof turnQueue<unknown, Input>>
  isBusy: boolean
  /** The turn that runs, or is suspended. */
  turn: { readonly marker: TurnMarker; readonly kept: OpenTurn | undefined } | undefined
  readonly end: () => Promise<void>
}

export class Conversations {
  readonly host: ConversationHost
  readonly #registry: TaskRegistry
  readonly #kept: KeptTurns
  /** The open conversations by id; the one that was used last is the last. */
  readonly #open = new Map<string, Open>()
  #isDisposed = false
  #isWaking = false

  constructor(host: ConversationHost) {
    this.host = host
    this.#registry = registryOf(host.manager)
    this.#kept = this.#registry.use(keptTurns)
    const isKeeping = host.respond !== undefined && !host.keepsMessages && this.#kept.canKeep
    const { keepTurns = isKeeping ? KEPT_TURNS : 0 } = host
    if (keepTurns > 0) this.#kept.keepAtMost(keepTurns)
    if (host.respond !== undefined) this.#startWaking()
  }

  /** From now on, what is owed to a conversation starts a turn of it. */
  #startWaking(): void {
    if (this.#isWaking) return
    this.#isWaking = true
    this.#registry.use(pushSubscribers).serve((owner) => this.#serves(owner))
    this.#registry
      .use(wakeUps)
      .owners()
      .subscribe((owner) => this.#wake(owner))
    for (const owner of this.#registry.ledger.countsByOwner('owed').keys()) this.#wake(owner)
    const wakeForInputs = (): void => this.#kept.owners().forEach((owner) => this.#wake(owner))
    void this.host.manager.recovered.then(wakeForInputs, () => undefined)
  }

  /**
   * Returns the conversation with an id, and opens it if it is not open.
   * @throws INVALID_INPUT for an invalid id or option, and for other options than those of the open conversation
   * @throws DISPOSED after `dispose`
   */
  get(id: string, options?: ConversationOptions): Conversation {
    if (typeof id !== 'string' || !(accepts(anId, id) || this.#isKnown(id)) || runOfOwner(id) !== undefined) {
      throw new InvalidInputError('id', id, `${anId.expected}, and not the name of a run`)
    }
    if (options !== undefined) checkOptions(options, conversationOptionTypes)
    const open = this.#open.get(id)
    if (open !== undefined && options !== undefined && options.respond !== open.options.respond) {
      throw new InvalidInputError(
        'options.respond',
        options.respond,
        'the same function as when the conversation was opened',
      )
    }
    const { conversation } = this.use(id, options)
    if (open === undefined && this.#serves(id)) {
      this.#startWaking()
      this.#wake(id)
    }
    return conversation
  }

  /** Returns a page of the conversations that are open, or have active tasks or owed results. */
  page(query: ConversationQuery = {}): ConversationPage {
    checkOptions(query, queryTypes, ['query'])
    const { after = '', limit = 100 } = query
    const { ledger } = this.#registry
    const owners = PARTS.flatMap((part) => [...ledger.countsByOwner(part).keys()])
    const ids = [...new Set([...this.#open.keys(), ...owners])].filter(
      (id) => id > after && runOfOwner(id) === undefined,
    )
    const shown = ids.sort().slice(0, limit)
    const [last] = shown.slice(-1)
    return {
      conversations: shown.map((id) => this.#infoOf(id)),
      ...(last !== undefined && ids.length > shown.length && { next: last }),
    }
  }

  /** Rejects the waiting turns of all conversations and aborts the running ones. Resolves when these have ended, or after their grace period. */
  async dispose(): Promise<void> {
    this.#isDisposed = true
    const open = [...this.#open.values()]
    this.#open.clear()
    await this.#withinGrace(Promise.all(open.map(async ({ work }) => work?.end())))
  }

  isBusy(id: string): boolean {
    return this.#open.get(id)?.work?.isBusy === true
  }

  /** Whether a conversation is in a list. A store may have tasks of any owner. */
  #isKnown(id: string): boolean {
    return this.#open.has(id) || PARTS.some((part) => this.#registry.ledger.countOf(part, id) > 0)
  }

  #infoOf(id: string): ConversationInfo {
    const { ledger } = this.#registry
    const [queued, running, owed] = PARTS.map((part) => ledger.countOf(part, id))
    return { id, isBusy: this.isBusy(id), queued, running, owed } as ConversationInfo
  }

  /** Whether the results of an owner start turns. */
  #serves(owner: string): boolean {
    if (runOfOwner(owner) !== undefined || this.#isDisposed) return false
    return this.#respondOf(this.#open.get(owner)) !== undefined
  }

  #respondOf(open: Open | undefined): RespondInConversation | undefined {
    return open?.options.respond ?? this.host.respond
  }

  /** Opens a conversation, or notes that it is used. */
  use(id: string, options: ConversationOptions = {}): Open {
    if (this.#isDisposed) throw disposed(id)
    let open = this.#open.get(id)
    open ??= {
      conversation: new HostConversation(id, this),
      options,
      usedAt: 0,
      work: undefined,
      tools: undefined,
      commands: undefined,
    }
    open.usedAt = elapsedMs(this.#registry.clock)
    this.#open.delete(id)
    this.#open.set(id, open)
    this.#dropIdle()
    return open
  }

  /** Drops the conversations that have been idle for a while. One with options of its own is kept, because nobody else knows them. */
  #dropIdle(): void {
    const before = elapsedMs(this.#registry.clock) - this.host.idleMs
    for (const [id, { usedAt, work, options }] of this.#open) {
      if (usedAt > before) return
      if (work === undefined && options.respond === undefined) this.#open.delete(id)
    }
  }

  async send(open: Open, text: string, options: SendOptions = {}): Promise<unknown> {
    if (typeof text !== 'string') throw new InvalidInputError('text', text, 'a string')
    checkOptions(options, sendOptionTypes)
    if (isWithin(open.work)) {
      throw new AgentTasksError(
        'OWN_TURN',
        `send of the conversation ${open.conversation.id} was called in a turn of the same conversation, which would wait for itself.`,
      )
    }
    if (this.#kept.isOn) this.#kept.checkText(text)
    const { id: inputId, signal, onStored } = options
    if (inputId !== undefined) return this.#sendOnce(open, inputId, text, options)
    if (onStored !== undefined) throw new InvalidInputError('options.onStored', onStored, 'no value without an id')
    const answer = await this.#workOf(open).turns.take(text, { signal })
    if (this.#kept.isOn) await this.#kept.stored()
    return answer
  }

  /** Takes one turn with a message, however often it is sent. */
  async #sendOnce(open: Open, inputId: string, text: string, { signal, onStored }: SendOptions): Promise<unknown> {
    const owner = open.conversation.id
    if (!this.#kept.isOn) {
      throw new InvalidInputError('options.id', inputId, 'no value without a store that keeps turns (keepTurns)')
    }
    signal?.throwIfAborted()
    const work = this.#workOf(open)
    const input = this.#kept.find(owner, inputId) ?? this.#kept.add(owner, inputId, text)
    if (input.text !== text) throw sentBefore(inputId)
    if (onStored !== undefined) this.#callWhenStored(onStored, owner)
    if (input.turn !== undefined) return input.turn
    try {
      return await this.#takeInput(work, input, signal)
    } catch (error) {
      if (!this.#isDisposed) this.#kept.drop(input)
      throw error
    }
  }

  #callWhenStored(onStored: () => void, owner: string): void {
    const report = (error: unknown): void => this.#registry.report(error, { source: 'delivery', owner })
    // If the store is lost, or the host is disposed first, `send` rejects.
    const stored = this.#kept.stored().then(
      () => true,
      () => false,
    )
    void stored.then((isStored) => isStored && onStored()).catch(report)
  }

  async #takeInput({ turns }: Work, input: Input, signal?: AbortSignal): Promise<unknown> {
    const turn = turns.take(input, { signal }).then(async (answer) => {
      await this.#kept.stored()
      return answer
    })
    input.turn = turn
    try {
      return await turn
    } finally {
      input.turn = undefined
    }
  }

  /** Takes the messages that an earlier process has stored. If the turn of one fails, `send` with its id or the next process takes it again. */
  #takeStored(work: Work, owner: string): void {
    for (const input of this.#kept.waiting(owner)) {
      this.#takeInput(work, input).catch((error: unknown) => {
        input.hasFailed = true
        if (!this.#isDisposed) this.#registry.report(error, { source: 'delivery', owner })
      })
    }
  }

  /** Starts a turn for what is owed to a conversation, or lets the conversation rest. */
  #wake(id: string): void {
    if (!this.#serves(id)) return
    if (!isOwing(this.#registry, id) && this.#kept.waiting(id).length === 0) {
      this.#rest(this.#open.get(id))
      return
    }
    try {
      const options = this.#open.has(id) ? {} : (this.host.openConversation?.(id) ?? {})
      if (options !== false) this.#workOf(this.use(id, options))
    } catch (error) {
      this.#registry.report(error, { source: 'delivery', owner: id })
    }
  }

  #workOf(open: Open): Work {
    if (open.work === undefined) {
      // Turns for results run in the context in which the host was created.
      const { hostContext } = this.#registry
      open.work = hostContext.runInAsyncScope(() => this.#begin(open))
      hostContext.runInAsyncScope(() => this.#takeStored(open.work as Work, open.conversation.id))
    }
    return open.work
  }

  #begin(open: Open): Work {
    const { conversation } = open
    const { id: owner } = conversation
    const { manager, autoTrigger } = this.host
    const respond = this.#respondOf(open)
    if (respond === undefined) {
      throw new InvalidInputError(
        'respond',
        undefined,
        'a function in the options of createAgentTasks or of `conversation`, because the message starts a turn',
      )
    }
    const turns = turnQueue<unknown, Input>(
      async (message, signal, delivery, marker) => {
        const [text, inputId] = typeof message === 'string' ? [message] : [message.text, message.inputId]
        const kept = this.#kept.isOn ? await this.#beginKept(marker, conversation.id, text, inputId) : undefined
        if (kept !== undefined && 'answer' in kept) return kept.answer
        if (kept !== undefined) this.#registry.use(turnLaunches).begin(marker, { owner, inputId, delivery })
        work.turn = { marker, kept }
        const answer = await respond({
          conversation,
          text,
          messages:
            kept === undefined
              ? []
              : [...kept.before.flatMap(({ messages }) => messages), { role: 'user', content: text }],
          signal,
          ...omitUndefined({ delivery }),
          get deliveryIds() {
            return turns.deliveryIds
          },
          suspend: () => turns.suspend(),
        })
        this.#addToTurn(work, answer, signal)
        return answer
      },
      this.#kept.isOn,
      () => (this.#isDisposed ? disposed(owner) : closed(owner)),
    )
    const reminders = this.#kept.isOn ? unmarked(this.host.reminders) : this.host.reminders
    const trigger = new AsyncTaskAutoTrigger(manager, reminders, turns.isBusy$, turns.triggerAgentTurn, {
      ...autoTrigger,
      owner,
    })
    const subscription = new Subscription(trigger.subscribe())
    const work: Work = {
      turns,
      isBusy: false,
      turn: undefined,
      end: () => {
        subscription.unsubscribe()
        return turns.dispose()
      },
    }
    subscription.add(
      turns.isBusy$.subscribe((isBusy) => {
        work.isBusy = isBusy
        // The trigger has to see first that the agent is idle.
        if (!isBusy) queueMicrotask(() => this.#rest(open))
      }),
    )
    return work
  }

  /** Begins a turn that is kept. Returns its answer instead if a turn with this message was kept before. */
  async #beginKept(
    marker: TurnMarker,
    owner: string,
    text: string,
    inputId: string | undefined,
  ): Promise<OpenTurn | { readonly answer: readonly unknown[] }> {
    const before = await this.#kept.read(owner)
    const first = { role: 'user', content: text }
    const same = inputId === undefined ? undefined : before.find((turn) => turn.inputId === inputId)
    if (same?.inputId === undefined) return { marker, owner, before, inputId, messages: [first] }
    const [asked, ...answer] = same.messages as (typeof first)[]
    if (asked?.content !== text) throw sentBefore(same.inputId)
    const input = this.#kept.find(owner, same.inputId)
    if (input !== undefined) this.#kept.drop(input)
    return { answer }
  }

  /** Adds what a part of a turn has returned. If that was the last part, the turn is kept when it is accepted, with all that it has delivered. */
  #addToTurn({ turn, turns }: Work, answer: unknown, signal: AbortSignal): void {
    if (turn?.kept === undefined) return
    const { marker, kept } = turn
    // A turn that was cancelled is not kept, so its results are delivered again.
    signal.throwIfAborted()
    kept.messages.push(...this.#kept.toMessages(answer))
    if (marker.isSuspended) return
    const { deliveryIds } = turns
    marker.hold({ acknowledge: () => this.#kept.keep(kept, deliveryIds), release: () => undefined })
  }

  /** Ends the trigger and the turns of a conversation that has no turn and to which nothing is owed. */
  #rest(open: Open | undefined): void {
    const { work } = open ?? {}
    if (open === undefined || work === undefined || work.isBusy) return
    const { id } = open.conversation
    if (isOwing(this.#registry, id) || this.#registry.ledger.isDelivering(id)) return
    open.work = undefined
    open.tools = undefined
    open.commands = undefined
    void work.end()
  }

  async resume(open: Open, run: (signal: AbortSignal) => unknown): Promise<unknown> {
    const { work } = open
    if (work === undefined) throw new InvalidInputError('resume', undefined, 'a turn that is suspended')
    if (typeof run !== 'function') throw new InvalidInputError('run', run, 'a function')
    return work.turns.resume(async (signal) => {
      const answer = await run(signal)
      this.#addToTurn(work, answer, signal)
      return answer
    })
  }

  async turns(id: string): Promise<readonly KeptTurn[]> {
    const stored = this.#kept.isOn ? await this.#kept.read(id) : []
    return stored.map(({ inputId: messageId, ...turn }) => ({ ...turn, ...omitUndefined({ messageId }) }))
  }

  async idle(id: string): Promise<void> {
    for (;;) {
      await this.host.manager.onIdle(id)
      const work = this.#open.get(id)?.work
      if (work?.isBusy !== true || isWithin(work)) return
      await firstValueFrom(work.turns.isBusy$.pipe(filter((isBusy) => !isBusy)), { defaultValue: false })
    }
  }

  async close(id: string, to: string | undefined): Promise<void> {
    const { manager } = this.host
    const ended = this.#open.get(id)?.work?.end()
    this.#open.delete(id)
    if (to === undefined) manager.cancelAll({ owner: id, reason: 'its conversation was closed' })
    manager.releaseOwner(id, omitUndefined({ to }))
    await this.#withinGrace(ended)
    if (this.#kept.isOn) await this.#kept.forget(id)
  }

  async #withinGrace(ended: Promise<unknown> | undefined): Promise<void> {
    const { graceMs: ms } = this.host
    if (ended !== undefined) await withTimeLimit(ended, { clock: this.#registry.clock, ms, late: () => undefined })
  }
}

/** Finds its state by its id at each call, so that it goes on working after the conversation was dropped. */
class HostConversation implements Conversation {
  readonly id: string
  readonly #all: Conversations
  #isClosed = false

  constructor(id: string, all: Conversations) {
    this.id = id
    this.#all = all
  }

  get isBusy(): boolean {
    return this.#all.isBusy(this.id)
  }

  get tools(): AgentTools & Partial<OptionalTools> {
    const { toolsOf } = this.#all.host
    if (this.#isClosed) return toolsOf(this.id)
    const open = this.#use()
    return (open.tools ??= toolsOf(this.id))
  }

  get commands(): readonly SlashCommand[] {
    const { manager } = this.#all.host
    const create = (): readonly SlashCommand[] =>
      createTaskCommands({ getAsyncTaskManager: () => manager, owner: this.id })
    if (this.#isClosed) return create()
    const open = this.#use()
    return (open.commands ??= create())
  }

  async send(text: string, options?: SendOptions): Promise<unknown> {
    return this.#all.send(this.#use(), text, options)
  }

  readonly launch: Conversation['launch'] = (...args) => {
    this.#use()
    this.#checkLaunch(args[2])
    return this.#all.host.launchFor(this.id)(...args)
  }

  /** A launch for another conversation, or for a run of one, is refused. */
  #checkLaunch({ owner = this.id, parentId }: LaunchOptions = {}): void {
    if (owner !== this.id) throw new InvalidInputError('options.owner', owner, `no value, or ${preview(this.id)}`)
    if (parentId === undefined || this.list().some(({ id }) => id === parentId)) return
    throw new InvalidInputError('options.parentId', parentId, 'the id of a task of this conversation')
  }

  async resume(run: (signal: AbortSignal) => unknown): Promise<unknown> {
    return this.#all.resume(this.#use(), run)
  }

  abandon(reason?: unknown): boolean {
    return this.#use().work?.turns.abandon(reason) === true
  }

  async messages(): Promise<unknown[]> {
    const turns = await this.turns()
    return turns.flatMap(({ messages }) => messages)
  }

  turns(): Promise<readonly KeptTurn[]> {
    return this.#all.turns(this.id)
  }

  list(): readonly AsyncTaskInfo[] {
    return visibleTasks(this.#all.host.manager, this.id)
  }

  onIdle(): Promise<void> {
    return this.#all.idle(this.id)
  }

  async close(options: { readonly to?: string } = {}): Promise<void> {
    checkOptions(options, closeOptionTypes)
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#all.close(this.id, options.to)
  }

  #use(): Open {
    if (this.#isClosed) throw closed(this.id)
    return this.#all.use(this.id)
  }
}

const isWithin = (work: Work | undefined): boolean =>
  work?.turn !== undefined && currentTurn()?.isWithin(work.turn.marker) === true

/** What was not kept has not arrived, so no result of it is marked as a possible repeat. */
const unmarked = (reminders: ReminderSource): ReminderSource => ({
  leaseReminder: (request) => {
    const lease = reminders.leaseReminder(request)
    return lease && { ...lease, release: () => lease.release() }
  },
})

const sentBefore = (id: unknown): InvalidInputError =>
  new InvalidInputError('options.id', id, 'another id, because a message of this conversation with another text has it')

/** The parts of the ledger that a list shows. */
const PARTS = ['queued', 'running', 'owed'] as const

const disposed = (id: string): DisposedError =>
  new DisposedError(`The host of the conversation ${id} was disposed, so it takes no further turns.`)

const closed = (id: string): AgentTasksError =>
  new AgentTasksError('CONVERSATION_CLOSED', `The conversation ${id} was closed. Get a new one from its host.`)
