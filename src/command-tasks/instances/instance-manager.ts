/**
 * Keeps the registered instances. The connection of each instance is an actor of `machines/instance.ts`.
 *
 * Handlers run after the change that they are called for, one after the other. They may connect and disconnect instances.
 */
import { createActor, type InspectionEvent } from 'xstate'
import { z } from 'zod'
import { instanceMachine, type InstanceEvent, type InstanceRef } from '../../../machines/instance.js'
import { callContext, type CallContext } from '../../isolation/call-context.js'
import { callIsolated } from '../../isolation/isolated-call.js'
import { observerOf } from '../../isolation/observed-clock.js'
import { toInspectFunction, type Inspect } from '../../isolation/inspection.js'
import { createOutbox } from '../../isolation/outbox.js'
import { actorClock, elapsedMs, systemClock, type Clock } from '../../system/clock.js'
import { AgentTasksError, InstanceError } from '../../errors.js'
import { preview } from '../../data/preview.js'
import { aClock, aFunction, anInspector, checkOptions, type OptionTypes } from '../../protocol/option-checks.js'
import { parseInput } from '../../protocol/parse.js'
import type { Instance, InstanceEnd } from './instance.js'

/** Receives exceptions of handlers and inspectors, and errors of `Instance.close`. */
export type OnInstanceError = (
  error: unknown,
  from: { readonly source: 'handler' | 'close' | 'inspector'; readonly instanceId: string },
) => void

/** Options of `InstanceManager`. */
export interface InstanceManagerOptions {
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** Called with exceptions of handlers and inspectors, and with errors of `Instance.close`. Default: `console.error`. */
  readonly onError?: OnInstanceError
  /** Receives the XState inspection events of the connections, after the change that caused them. Default: none. */
  readonly inspect?: Inspect | undefined
}

const optionTypes: OptionTypes<InstanceManagerOptions> = { clock: aClock, onError: aFunction, inspect: anInspector }

/** The state of an instance's connection. */
export type InstanceState = 'connecting' | 'connected' | 'disconnected'

/** A registered instance. */
export interface InstanceEntry {
  /** The id of the instance. */
  readonly id: string
  /** The number of this registration, counted from 1. It distinguishes the instance from earlier and later ones with the same id. */
  readonly serial: number
  /** How the instance is reached: functions of this process, an MCP server, or a remote worker over WebSocket. */
  readonly kind: Instance['kind']
  /** The state of its connection. */
  readonly state: InstanceState
  /** Whether the instance can run commands now. */
  readonly isConnected: boolean
  /** When the instance connected last, in ms since the epoch. */
  readonly connectedAt: number | undefined
  /** When the instance last connected, answered a ping or ended a call, in ms since the epoch. */
  readonly lastActivity: number | undefined
  /** @internal Records activity. */
  noteActivity(): void
  /** The registered object. */
  readonly instance: Instance
  /** The actor that holds the state of the connection. */
  readonly ref: InstanceRef
}

/** Called when an instance has connected. */
export type ConnectHandler = (instanceId: string) => void
/** Called when an instance has disconnected. `reason` is a sentence. */
export type DisconnectHandler = (instanceId: string, reason: string) => void

/** Registers instances, and calls handlers when they connect and disconnect. */
export class InstanceManager {
  readonly #clock: Clock
  readonly #onError: OnInstanceError
  readonly #inspect: ReturnType<typeof toInspectFunction>
  readonly #entries = new Map<string, RegisteredInstance>()
  readonly #connectHandlers: Handlers<ConnectHandler> = new Map()
  readonly #takeoverHandlers: Handlers<ConnectHandler> = new Map()
  readonly #disconnectHandlers: Handlers<DisconnectHandler> = new Map()
  readonly #outbox = createOutbox<() => void>({ notify: (run) => run() })
  readonly #closing = new Set<Promise<void>>()
  #serial = 0
  #pastLateAnswers = 0
  #isDisposed = false
  #isClaimed = false

  /** @throws INVALID_INPUT for an unknown or invalid option */
  constructor(options: InstanceManagerOptions = {}) {
    checkOptions(options, optionTypes)
    this.#clock = options.clock ?? systemClock
    this.#onError = options.onError ?? observerOf(this.#clock) ?? reportToConsole
    this.#inspect = toInspectFunction(options.inspect)
  }

  /**
   * Registers an instance. An instance with a `connection` is connected when that opens; any other instance is connected at once.
   * @throws AgentTasksError when the id is in use, or after `dispose`
   * @throws INVALID_INPUT for an invalid id
   */
  connect(instance: Instance): InstanceEntry {
    const { id } = instance
    if (this.#isDisposed) {
      throw new InstanceError('INSTANCE_DISCONNECTED', id, 'The instance manager was disposed: it takes no instances.')
    }
    parseInput(z.string().min(1), id, 'instance.id')
    const taken = this.#entries.get(id)
    if (taken !== undefined) {
      throw new InstanceError('INSTANCE_ID_IN_USE', id, `Instance id ${preview(id)} is ${taken.describeUse()}`)
    }
    const entry = new RegisteredInstance(instance, (this.#serial += 1), this.#clock, (created) =>
      this.#createActor(created),
    )
    this.#entries.set(id, entry)
    this.#outbox.batch(() => entry.ref.start())
    instance.onLost((reason) => this.#send(entry, { type: 'connection.lost' }, reason))
    if (instance.connection === undefined) this.#send(entry, { type: 'connection.opened' })
    else {
      instance.connection.onEvent((type) => {
        entry.noteActivity()
        this.#send(entry, { type })
        if (type === 'connection.takenOver') this.#notify(this.#takeoverHandlers, entry.id)
      })
    }
    return entry
  }

  /**
   * Disconnects an instance. Its unfinished tasks fail.
   * @returns true when the instance is closed; false if no instance has this id
   */
  async disconnect(instanceId: string, reason = 'It was disconnected.'): Promise<boolean> {
    const entry = this.#entries.get(instanceId)
    if (entry === undefined) return false
    this.#send(entry, { type: 'instance.disconnect' }, reason)
    await Promise.all(this.#closing)
    return true
  }

  /** Returns the registered instance with this id. It may be connected, or still connecting. */
  get(instanceId: string): InstanceEntry | undefined {
    return this.#entries.get(instanceId)
  }

  /** Returns the first connected instance, in the order of registration. */
  first(): InstanceEntry | undefined {
    for (const entry of this.#entries.values()) if (entry.isConnected) return entry
    return undefined
  }

  /** Returns all registered instances, in the order of registration. Some may still be connecting. */
  list(): InstanceEntry[] {
    return [...this.#entries.values()]
  }

  /** The number of answers that were dropped, because their call had already ended. */
  get lateAnswers(): number {
    return this.list().reduce((sum, { instance }) => sum + (instance.lateAnswers ?? 0), this.#pastLateAnswers)
  }

  /** Calls `handler` when an instance has connected. Returns an unsubscribe function. */
  onConnect(handler: ConnectHandler): () => void {
    return addHandler(this.#connectHandlers, handler)
  }

  /** Calls `handler` once for each instance that has disconnected, for any reason. Returns an unsubscribe function. */
  onDisconnect(handler: DisconnectHandler): () => void {
    return addHandler(this.#disconnectHandlers, handler)
  }

  /** @internal Calls `handler` when a new connection of an instance has replaced its previous one. Returns an unsubscribe function. */
  onTakenOver(handler: ConnectHandler): () => void {
    return addHandler(this.#takeoverHandlers, handler)
  }

  /**
   * @internal Reserves these instances for one `TaskManager`. With two task managers, two commands of one instance could run at the same time.
   * @returns a function that ends the reservation
   * @throws AgentTasksError with the code `INSTANCES_IN_USE` when the instances are reserved already
   */
  claim(): () => void {
    if (this.#isClaimed) {
      throw new AgentTasksError(
        'INSTANCES_IN_USE',
        'options.instances: another TaskManager uses this InstanceManager. Two task managers would run two commands of one instance at ' +
          'the same time. Use that TaskManager, dispose it first, or create another InstanceManager.',
      )
    }
    this.#isClaimed = true
    return () => {
      this.#isClaimed = false
    }
  }

  /** Disconnects all instances. Resolves when they are closed. */
  async dispose(): Promise<void> {
    this.#isDisposed = true
    for (const entry of this.list()) void this.disconnect(entry.id, 'The instance manager was disposed.')
    await Promise.all(this.#closing)
  }

  /** Calls `dispose()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  #createActor(entry: RegisteredInstance): InstanceRef {
    const { id, instance } = entry
    const inspect = this.#inspect
    return createActor(instanceMachine, {
      id: `instance.${id}`,
      ...(inspect && { inspect: (event) => this.#outbox.push(() => this.#notifyInspector(inspect, event, id)) }),
      // The input does not contain the whole entry, because inspectors show the input.
      input: {
        timing: instance.connection?.timing ?? {},
        host: { failCalls: (cause) => entry.failCalls(cause) },
      },
      clock: actorClock(
        this.#clock,
        (run) => this.#change(entry, run),
        () => ({ name: `time limit of the connection of ${id}`, kind: 'deadline' }),
      ),
    })
  }

  #send(entry: RegisteredInstance, event: InstanceEvent, reason?: string): void {
    if (entry.state === 'disconnected') return
    if (reason !== undefined) entry.reason = reason
    this.#change(entry, () => entry.ref.send(event))
  }

  #change(entry: RegisteredInstance, change: () => void): void {
    this.#outbox.batch(() => {
      change()
      const state = stateOf(entry.ref)
      if (state === entry.state) return
      const reason = entry.describeEnd()
      entry.state = state
      if (state === 'connected') {
        entry.connectedAt = this.#clock.now()
        entry.noteActivity()
        this.#outbox.push(() => this.#notify(this.#connectHandlers, entry.id))
      }
      if (state === 'disconnected') {
        this.#entries.delete(entry.id)
        this.#pastLateAnswers += entry.instance.lateAnswers ?? 0
        this.#outbox.push(() => this.#notify(this.#disconnectHandlers, entry.id, reason))
        this.#close(entry, this.#endOf(entry))
      }
    })
  }

  #notify<Args extends [string, ...unknown[]]>(handlers: Handlers<(...args: Args) => void>, ...args: Args): void {
    for (const [handler, context] of [...handlers]) {
      if (!handlers.has(handler)) continue
      callIsolated(
        (): unknown => context.runInAsyncScope(() => handler(...args)),
        (error) => this.#report(error, 'handler', args[0]),
      )
    }
  }

  #notifyInspector(inspect: (event: InspectionEvent) => unknown, event: InspectionEvent, instanceId: string): void {
    callIsolated(
      () => inspect(event),
      (error) => this.#report(error, 'inspector', instanceId),
    )
  }

  #endOf({ reason }: RegisteredInstance): InstanceEnd {
    if (reason === undefined) return 'silent'
    return this.#isDisposed ? 'goingAway' : 'disconnected'
  }

  #close({ id, instance }: RegisteredInstance, why: InstanceEnd): void {
    // Closes in a later microtask. The tasks of the instance then fail first with its disconnection, and not with the failure of their calls.
    const closed = Promise.resolve()
      .then(() => instance.close(why))
      .catch((error: unknown) => this.#report(error, 'close', id))
      .finally(() => this.#closing.delete(closed))
    this.#closing.add(closed)
  }

  #report(error: unknown, source: 'handler' | 'close' | 'inspector', instanceId: string): void {
    callIsolated(
      (): unknown => this.#onError(error, { source, instanceId }),
      () => undefined,
    )
  }
}

class RegisteredInstance implements InstanceEntry {
  readonly id: string
  readonly kind: Instance['kind']
  readonly serial: number
  readonly instance: Instance
  readonly ref: InstanceRef
  state: InstanceState = 'connecting'
  connectedAt: number | undefined
  lastActivity: number | undefined
  readonly #clock: Clock
  /** When the instance was registered, in ms of the monotonic clock. */
  readonly #registeredAt: number
  /** Why the instance was disconnected. Undefined while it is connected, and when a time limit ended the connection. */
  reason: string | undefined

  constructor(instance: Instance, serial: number, clock: Clock, createRef: (entry: RegisteredInstance) => InstanceRef) {
    this.#clock = clock
    this.#registeredAt = elapsedMs(clock)
    this.id = instance.id
    this.kind = instance.kind
    this.serial = serial
    this.instance = instance
    this.ref = createRef(this)
  }

  get isConnected(): boolean {
    return this.state === 'connected'
  }

  noteActivity(): void {
    this.lastActivity = this.#clock.now()
  }

  failCalls(cause: 'takenOver' | 'disconnected'): void {
    this.instance.connection?.failCalls(cause === 'takenOver' ? 'Its connection was taken over.' : this.describeEnd())
  }

  /** Explains why a second instance cannot use this id, and what to do. */
  describeUse(): string {
    const { connectTimeoutMs } = this.instance.connection?.timing ?? {}
    if (this.isConnected || connectTimeoutMs === undefined) {
      return 'in use. End that instance first, or choose another id.'
    }
    const leftMs = this.#registeredAt + connectTimeoutMs - elapsedMs(this.#clock)
    return `reserved for the worker that registered it, for another ${Math.ceil(leftMs / 1000)} s. ${RESTARTED_WORKER}`
  }

  describeEnd(): string {
    const { connectTimeoutMs = 0, livenessMs = 0 } = this.instance.connection?.timing ?? {}
    if (this.reason !== undefined) return this.reason
    return this.state === 'connecting'
      ? `It did not connect within ${connectTimeoutMs} ms.`
      : `It showed no sign of life for ${livenessMs} ms.`
  }
}

/** Explains what to do when a restarted worker finds its id in use. */
export const RESTARTED_WORKER =
  'If this is the same worker after a restart: `connectInstance` with the option `secretFile` keeps its id from one start to the next. ' +
  'Otherwise choose another id.'

/** Handlers, with the contexts in which they were added. */
type Handlers<T> = Map<T, CallContext>

function addHandler<T>(handlers: Handlers<T>, handler: T): () => void {
  if (!handlers.has(handler)) handlers.set(handler, callContext())
  return () => handlers.delete(handler)
}

function stateOf(ref: InstanceRef): InstanceState {
  const snapshot = ref.getSnapshot()
  if (snapshot.matches('disconnected')) return 'disconnected'
  return snapshot.matches('connected') ? 'connected' : 'connecting'
}

const reportToConsole: OnInstanceError = (error, { source, instanceId }) => {
  console.error(`[agent-tasks] ${source} of instance ${instanceId}:`, error)
}
