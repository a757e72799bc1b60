/**
 * The instances that are known, each an actor of `machines/instance.ts`: who is connected, and who has just gone (seed 004).
 *
 * What follows from a change is told when the change is over, in order; whoever is told may connect and disconnect at once.
 */
import { createActor, type InspectionEvent } from 'xstate'
import { z } from 'zod'
import { instanceMachine, type InstanceEvent, type InstanceRef } from '../../machines/instance.js'
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../clock.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import { createOutbox } from '../callbacks/outbox.js'
import { InstanceError } from '../errors.js'
import { parseInput } from '../protocol/parse.js'
import { preview } from '../preview.js'
import type { Instance, InstanceEnd } from './instance.js'

/** What went wrong besides, and with which instance. */
export type OnInstanceError = (
  error: unknown,
  from: { readonly source: 'handler' | 'close' | 'inspector'; readonly instanceId: string },
) => void

/** Options of `InstanceManager`. */
export interface InstanceManagerOptions {
  /** Default: the platform's. */
  readonly clock?: Clock
  /** Told of exceptions in handlers and of instances that do not close. Default: `console.error`. */
  readonly onError?: OnInstanceError
  /** Sees what the instances' actors do (XState's inspection events), after the fact. Default: nobody, which costs nothing. */
  readonly inspect?: Inspect | undefined
}

/** Where the connection of an instance stands. */
export type InstanceState = 'connecting' | 'connected' | 'disconnected'

/** An instance as it is known. */
export interface InstanceEntry {
  /** The instance's id. */
  readonly id: string
  /** Its place among all that were ever taken in, from 1: tells it from others that bear its id before or after. */
  readonly serial: number
  /** How it is reached. */
  readonly kind: Instance['kind']
  /** Where its connection stands. */
  readonly state: InstanceState
  /** Whether it takes commands: the same everywhere. */
  readonly isConnected: boolean
  /** When it connected last, in ms since the epoch. */
  readonly connectedAt: number | undefined
  /** The instance itself. */
  readonly instance: Instance
  /** The actor of its connection. */
  readonly ref: InstanceRef
}

/** Told of an instance that has connected. */
export type ConnectHandler = (instanceId: string) => void
/** Told of an instance that is connected no more, and why. */
export type DisconnectHandler = (instanceId: string, reason: string) => void

interface Known extends InstanceEntry {
  state: InstanceState
  connectedAt: number | undefined
  reason: string | undefined
  readonly ref: InstanceRef
}

/** Knows the instances, and tells who comes and goes (seed 004). */
export class InstanceManager {
  readonly #clock: Clock
  readonly #onError: OnInstanceError
  readonly #inspect: ReturnType<typeof toInspectFunction>
  readonly #known = new Map<string, Known>()
  readonly #connectHandlers = new Set<ConnectHandler>()
  readonly #disconnectHandlers = new Set<DisconnectHandler>()
  readonly #outbox = createOutbox<() => void>({ notify: (run) => run() })
  readonly #closing = new Set<Promise<void>>()
  #serial = 0
  #pastLateAnswers = 0
  #isDisposed = false

  constructor(options: InstanceManagerOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#onError = options.onError ?? reportToConsole
    this.#inspect = toInspectFunction(options.inspect)
  }

  /**
   * Takes an instance in. It is connected at once, unless its connection is opened later.
   * @throws InstanceError when the id is in use, InvalidInputError when it is none; nothing was changed then
   */
  connect(instance: Instance): InstanceEntry {
    const { id, kind } = instance
    if (this.#isDisposed) {
      throw new InstanceError('INSTANCE_DISCONNECTED', id, 'The instance manager was disposed: it takes no instances.')
    }
    parseInput(z.string().min(1), id, 'instance.id')
    if (this.#known.has(id)) {
      throw new InstanceError(
        'INSTANCE_ID_IN_USE',
        id,
        `Instance id ${preview(id)} is in use. Disconnect that instance first, or choose another id.`,
      )
    }
    const known: Known = {
      id,
      serial: (this.#serial += 1),
      kind,
      instance,
      state: 'connecting',
      get isConnected() {
        return known.state === 'connected'
      },
      connectedAt: undefined,
      reason: undefined,
      ref: this.#createActor(instance, () => known),
    }
    this.#known.set(id, known)
    this.#outbox.batch(() => known.ref.start())
    instance.onLost((reason) => this.#send(known, { type: 'connection.lost' }, reason))
    if (instance.connection === undefined) this.#send(known, { type: 'connection.opened' })
    else instance.connection.onEvent((type) => this.#send(known, { type }))
    return known
  }

  /**
   * Ends an instance; its tasks fail.
   * @returns whether it was known, when nothing of it is left
   */
  async disconnect(instanceId: string, reason = 'It was disconnected.'): Promise<boolean> {
    const known = this.#known.get(instanceId)
    if (known === undefined) return false
    this.#send(known, { type: 'instance.disconnect' }, reason)
    await Promise.all(this.#closing)
    return true
  }

  /** An instance that is known: connecting or connected. */
  get(instanceId: string): InstanceEntry | undefined {
    return this.#known.get(instanceId)
  }

  /** The first that is connected, in the order in which they were taken in. */
  first(): InstanceEntry | undefined {
    for (const known of this.#known.values()) if (known.isConnected) return known
    return undefined
  }

  /** All that are known, in the order in which they were taken in. */
  list(): InstanceEntry[] {
    return [...this.#known.values()]
  }

  /** Answers that came when nobody waited for them, of all instances there were. */
  get lateAnswers(): number {
    return this.list().reduce((sum, { instance }) => sum + (instance.lateAnswers ?? 0), this.#pastLateAnswers)
  }

  /** Calls `handler` when an instance has connected. Returns what takes the handler back. */
  onConnect(handler: ConnectHandler): () => void {
    return addHandler(this.#connectHandlers, handler)
  }

  /** Calls `handler` once for each instance that has gone, whatever the reason (seed 004). Returns what takes the handler back. */
  onDisconnect(handler: DisconnectHandler): () => void {
    return addHandler(this.#disconnectHandlers, handler)
  }

  /** Disconnects everything; resolves when nothing is left of it. */
  async dispose(): Promise<void> {
    this.#isDisposed = true
    for (const known of this.list()) void this.disconnect(known.id, 'The instance manager was disposed.')
    await Promise.all(this.#closing)
  }

  #createActor(instance: Instance, known: () => Known): InstanceRef {
    const { connection } = instance
    const inspect = this.#inspect
    return createActor(
      instanceMachine.provide({
        actions: {
          failCalls: ({ event }) =>
            connection?.failCalls(
              event.type === 'connection.takenOver' ? 'Its connection was taken over.' : reasonOf(known(), instance),
            ),
        },
      }),
      {
        id: `instance.${instance.id}`,
        ...(inspect && {
          inspect: (event) => this.#outbox.push(() => this.#tellInspector(inspect, event, instance.id)),
        }),
        input: { timing: connection?.timing ?? {} },
        clock: {
          setTimeout: (run: () => void, ms: number) =>
            setLongTimeout(this.#clock, () => this.#change(known(), run), ms),
          clearTimeout: (timer: unknown) => clearLongTimeout(this.#clock, timer as LongTimer | undefined),
        },
      },
    )
  }

  #send(known: Known, event: InstanceEvent, reason?: string): void {
    // What comes after its end is no news.
    if (known.state === 'disconnected') return
    if (reason !== undefined) known.reason = reason
    this.#change(known, () => known.ref.send(event))
  }

  #change(known: Known, change: () => void): void {
    this.#outbox.batch(() => {
      change()
      const state = stateOf(known.ref)
      if (state === known.state) return
      const reason = reasonOf(known, known.instance)
      known.state = state
      if (state === 'connected') {
        known.connectedAt = this.#clock.now()
        this.#outbox.push(() => this.#tell(this.#connectHandlers, known.id))
      }
      if (state === 'disconnected') {
        this.#known.delete(known.id)
        this.#pastLateAnswers += known.instance.lateAnswers ?? 0
        this.#outbox.push(() => this.#tell(this.#disconnectHandlers, known.id, reason))
        this.#close(known, this.#endOf(known))
      }
    })
  }

  #tell<Args extends [string, ...unknown[]]>(handlers: ReadonlySet<(...args: Args) => void>, ...args: Args): void {
    for (const handler of [...handlers]) {
      if (!handlers.has(handler)) continue
      callIsolated(
        (): unknown => handler(...args),
        (error) => this.#report(error, 'handler', args[0]),
      )
    }
  }

  #tellInspector(inspect: (event: InspectionEvent) => unknown, event: InspectionEvent, instanceId: string): void {
    callIsolated(
      () => inspect(event),
      (error) => this.#report(error, 'inspector', instanceId),
    )
  }

  /** Nobody gave a reason: then a delay of the chart ended it. */
  #endOf({ reason }: Known): InstanceEnd {
    if (reason === undefined) return 'silent'
    return this.#isDisposed ? 'goingAway' : 'disconnected'
  }

  #close({ id, instance }: Known, why: InstanceEnd): void {
    // Its tasks are failed first, so that they fail because it is gone.
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

function addHandler<T>(handlers: Set<T>, handler: T): () => void {
  handlers.add(handler)
  return () => handlers.delete(handler)
}

function stateOf(ref: InstanceRef): InstanceState {
  const snapshot = ref.getSnapshot()
  if (snapshot.matches('disconnected')) return 'disconnected'
  return snapshot.matches('connected') ? 'connected' : 'connecting'
}

/** Nobody gave a reason: then a delay of the chart ended it. */
function reasonOf({ reason, state }: Known, { connection }: Instance): string {
  if (reason !== undefined) return reason
  return state === 'connecting'
    ? `It did not connect within ${connection?.timing.connectTimeoutMs ?? 0} ms.`
    : `It showed no sign of life for ${connection?.timing.livenessMs ?? 0} ms.`
}

const reportToConsole: OnInstanceError = (error, { source, instanceId }) => {
  console.error(`[agent-tasks] ${source} of instance ${instanceId}:`, error)
}
