/**
 * Keeps the messages of turns in the store, and messages that wait for their turn (promise H8). A turn is stored in one write with the results that it
 * has delivered: after a crash, either all of it is there, or it never was, and what was owed is owed again.
 */
import { Subscription } from 'rxjs'
import { z } from 'zod'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { runOfOwner } from '../../../machines/run-owner.js'
import { isOutstanding, type TaskEntry } from '../../../machines/task-entry.js'
import { jsonBytes } from '../../data/json-size.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { preview } from '../../data/preview.js'
import { AgentTasksError, DisposedError, InvalidInputError } from '../../errors.js'
import type { TurnMarker } from '../../isolation/current-turn.js'
import { lazily } from '../../protocol/lazily.js'
import { turnId, type StoredDelivery, type StoredJson, type StoredTurn } from '../../store/store.js'
import { turnLaunches } from './turn-launches.js'

const FEATURE = 'inputs'

/** The maximum number of messages with an id that wait in one conversation. */
const MAX_INPUTS = 1000

/** The maximum size of a message that is sent, in bytes of JSON. */
const MAX_INPUT_BYTES = 1024 * 1024

/** The maximum size of what a turn adds to its message, in bytes of JSON. */
const MAX_TURN_BYTES = 64 * 1024 * 1024

/** A message of a user that is stored until a turn with it is kept. */
export interface Input {
  readonly owner: string
  /** The id that its sender has chosen, which no other message of the conversation has. */
  readonly inputId: string
  readonly text: string
  /** Its place in the order of the messages. */
  readonly seq: number
  /** Its turn, in this process. */
  turn: Promise<unknown> | undefined
  /** Whether its last turn in this process has failed. */
  hasFailed: boolean
}

/** A turn that is kept when it is accepted. */
export interface OpenTurn {
  readonly marker: TurnMarker
  readonly owner: string
  /** The turns that were kept before it. */
  readonly before: readonly StoredTurn[]
  readonly inputId: string | undefined
  readonly messages: unknown[]
}

const storedInputSchema = lazily(() =>
  z.object({ id: z.string(), owner: z.string(), inputId: z.string(), text: z.string(), seq: z.number() }),
)

export class KeptTurns implements Feature {
  readonly states: FeatureStates = { feature: FEATURE, restore: (rows) => this.#restore(rows) }
  readonly #registry: TaskRegistry
  /** The inputs of each owner by their ids, in their order. */
  readonly #inputs = new Map<string, Map<string, Input>>()
  #lastSeq = 0
  #limit = 0

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** Whether turns are kept. */
  get isOn(): boolean {
    return this.#limit > 0
  }

  /** Whether the store can keep turns. */
  get canKeep(): boolean {
    return this.#registry.persistence?.turns !== undefined
  }

  /**
   * Keeps turns from now on.
   * @param limit how many of each owner
   * @throws INVALID_INPUT when there is no store, or one that cannot keep turns
   */
  keepAtMost(limit: number): void {
    const { persistence } = this.#registry
    if (persistence?.turns === undefined) {
      const lack = persistence === undefined ? 'a store' : 'a store with `turns`'
      throw new InvalidInputError('options.keepTurns', limit, `no value without ${lack}`)
    }
    this.#limit = limit
  }

  /** The kept turns of an owner, with all that were kept before the call. */
  async read(owner: string): Promise<readonly StoredTurn[]> {
    await this.stored()
    return (await this.#registry.persistence?.turns?.read(owner, this.#limit)) ?? []
  }

  /**
   * Resolves when all changes so far are stored, however often that is tried.
   * @throws DISPOSED if the registry is disposed first
   * @throws StoreError if the store is lost first
   */
  async stored(): Promise<void> {
    const { persistence, notifications$ } = this.#registry
    const ends = new Subscription()
    try {
      await new Promise<void>((resolve, reject) => {
        ends.add(notifications$.subscribe({ complete: () => reject(new DisposedError()) }))
        ends.add(persistence?.onLost(reject))
        persistence?.after({ onStored: resolve })
      })
    } finally {
      ends.unsubscribe()
    }
  }

  /** @throws INVALID_INPUT for a text that is too large */
  checkText(text: string): void {
    if (jsonBytes(text, MAX_INPUT_BYTES) <= MAX_INPUT_BYTES) return
    throw new InvalidInputError('text', text, `at most ${MAX_INPUT_BYTES} bytes of JSON, because the host keeps turns`)
  }

  /**
   * Returns what is stored of the messages that `respond` has returned.
   * @throws INVALID_INPUT for what is not an array of JSON objects, or too large
   */
  toMessages(answer: unknown): readonly unknown[] {
    const expected = `an array of messages, each an object that JSON can represent, of together at most ${MAX_TURN_BYTES} bytes, because the store keeps the turns; with keepTurns: 0 it keeps none`
    const messages = toJson(answer)
    const isList = Array.isArray(messages) && messages.every((item) => typeof item === 'object' && item !== null)
    if (isList && jsonBytes(messages, MAX_TURN_BYTES) <= MAX_TURN_BYTES) return messages
    throw new InvalidInputError('the result of respond', answer, expected)
  }

  /**
   * Keeps a turn, in one write with the results that it has delivered. The earliest turn beyond the limit is removed.
   * @param deliveryIds the accepted messages in the turn
   */
  keep({ marker, owner, before, inputId, messages }: OpenTurn, deliveryIds: readonly string[]): void {
    const { persistence, clock } = this.#registry
    // Nothing of the turn counts as delivered any more, so the next process takes it.
    if (this.#registry.isDisposed) return
    const seq = (before.at(-1)?.seq ?? 0) + 1
    this.#registry.batch(() => {
      persistence?.putTurn({
        id: turnId(owner, seq),
        owner,
        seq,
        at: clock.now(),
        messages,
        ...omitUndefined({ inputId }),
      })
      if (seq > this.#limit) persistence?.removeTurn(turnId(owner, seq - this.#limit))
      if (inputId !== undefined) this.#remove(owner, inputId)
      this.#registry.use(turnLaunches).kept(marker)
      for (const id of deliveryIds) persistence?.confirmDelivery(id)
    })
  }

  /** Removes the turns and inputs of an owner. */
  async forget(owner: string): Promise<void> {
    this.#registry.batch(() => this.#registry.use(turnLaunches).forget(owner))
    for (const inputId of [...(this.#inputs.get(owner)?.keys() ?? [])]) this.#remove(owner, inputId)
    await this.stored()
    const { persistence } = this.#registry
    for (const { id } of (await persistence?.turns?.read(owner)) ?? []) persistence?.removeTurn(id)
    await this.stored()
  }

  /** The owners with inputs that have no turn in this process. */
  owners(): string[] {
    return [...this.#inputs.keys()].filter((owner) => this.waiting(owner).length > 0)
  }

  /** The inputs of an owner that have no turn in this process, and no failed one, in their order. */
  waiting(owner: string): Input[] {
    return [...(this.#inputs.get(owner)?.values() ?? [])].filter(
      ({ turn, hasFailed }) => turn === undefined && !hasFailed,
    )
  }

  find(owner: string, inputId: string): Input | undefined {
    return this.#inputs.get(owner)?.get(inputId)
  }

  /**
   * Adds an input. It is stored with the next write.
   * @throws AgentTasksError `INPUT_LIMIT` when too many inputs of the owner wait
   */
  add(owner: string, inputId: string, text: string): Input {
    const inputs = this.#inputsOf(owner)
    if (inputs.size >= MAX_INPUTS) {
      throw new AgentTasksError(
        'INPUT_LIMIT',
        `Max waiting messages of a conversation (${MAX_INPUTS}) reached: conversation ${preview(owner)} takes none before a turn has ended.`,
      )
    }
    this.#lastSeq += 1
    const input = { owner, inputId, text, seq: this.#lastSeq, turn: undefined, hasFailed: false }
    inputs.set(inputId, input)
    this.#registry.persistence?.keepState(FEATURE, rowOf(owner, inputId), { owner, inputId, text, seq: input.seq })
    return input
  }

  /** Drops an input whose turn has failed. After `dispose` it stays stored, and the next process takes it. */
  drop({ owner, inputId }: Input): void {
    if (!this.#registry.isDisposed) this.#registry.batch(() => this.#remove(owner, inputId))
  }

  /** Keeps the record of a task whose launch may be repeated, because its turn is taken again when it is lost. */
  keeps({ record }: TaskEntry): boolean {
    const { history } = this.#registry
    const launches = this.#registry.use(turnLaunches)
    const message = launches.messageOf(record.id)
    if (message === undefined || !launches.areRestored) return message !== undefined
    if (message.type === 'input') return this.find(message.owner, message.id) !== undefined
    const delivered = history.get(message.id)
    return delivered !== undefined && isOutstanding(delivered)
  }

  /** A message that was not confirmed was not kept, because both are one write. */
  wasDelivered({ owner, state }: StoredDelivery): boolean | undefined {
    return this.isOn && state === 'sent' && runOfOwner(owner) === undefined ? false : undefined
  }

  #remove(owner: string, inputId: string): void {
    const inputs = this.#inputs.get(owner)
    if (inputs?.delete(inputId) !== true) return
    if (inputs.size === 0) this.#inputs.delete(owner)
    this.#registry.persistence?.dropState(FEATURE, rowOf(owner, inputId))
    this.#registry.use(turnLaunches).offer()
  }

  #inputsOf(owner: string): Map<string, Input> {
    const inputs = this.#inputs.get(owner) ?? new Map<string, Input>()
    this.#inputs.set(owner, inputs)
    return inputs
  }

  #restore(rows: ReadonlyMap<string, StoredJson>): void {
    const found: Omit<Input, 'turn' | 'hasFailed'>[] = []
    takeRows(this.#registry, { feature: FEATURE, schema: storedInputSchema(), rows }, ({ id: _, ...input }) => {
      found.push(input)
    })
    for (const input of found.sort((a, b) => a.seq - b.seq)) {
      this.#inputsOf(input.owner).set(input.inputId, { ...input, turn: undefined, hasFailed: false })
      this.#lastSeq = input.seq
    }
  }
}

/** Returns the value as JSON has it; undefined if JSON cannot represent it. */
function toJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value)) as unknown
  } catch {
    return undefined
  }
}

/** The length of the owner keeps the ids of two owners apart. */
const rowOf = (owner: string, inputId: string): string => `${owner.length}/${owner}/${inputId}`

export const keptTurns = (registry: TaskRegistry): KeptTurns => new KeptTurns(registry)
