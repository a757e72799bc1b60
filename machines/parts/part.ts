/**
 * What a task may do is divided into parts. A part handles its events, and takes part in the life of each task: the registry calls the members of all
 * parts, in the order of the list in registry.ts.
 *
 * A part never calls code of the host, never starts a task, and sends to an actor only through `defer`. Parts that need each other get each other from
 * the constructor.
 */
import type { AnyActorRef } from 'xstate'
import type { Ledger } from '../ledger.js'
import type { History } from '../history.js'
import type { ChangeFeed } from '../change-feed.js'
import type {
  DurableBefore,
  AdmissionRefusal,
  RegistryAnswers,
  RegistryEffect,
  RegistryEvent,
} from '../registry-events.js'
import type { Settlement } from '../records.js'
import type { TaskAdmission } from '../task-admission.js'
import type { Due, StartQueue } from '../start-queue.js'
import type { TaskEntry } from '../task-entry.js'
import type { HoldReason } from '../task-queue.js'

export type EventOf<Type extends RegistryEvent['type']> = Extract<RegistryEvent, { type: Type }>

/** The actor of the registry, during a transition. */
export interface Scope {
  readonly self: AnyActorRef
  /** Runs `act` at the end of the transition. */
  readonly defer: (act: () => void) => void
}

export type Handler<Type extends RegistryEvent['type']> = (
  event: EventOf<Type>,
  scope: Scope,
) => Type extends keyof RegistryAnswers ? RegistryAnswers[Type] : undefined

export type Handlers<Types extends RegistryEvent['type']> = { readonly [Type in Types]: Handler<Type> }

export interface Registration {
  readonly admission: TaskAdmission
  /** Whether the manager starts the run. */
  readonly isLaunched: boolean
  /** The task whose run launches it. */
  readonly parent: TaskEntry | undefined
}

/** What earlier processes have recorded about a task. */
export interface Earlier {
  /** How long its run has lasted, in ms. */
  readonly ranMs: number
  readonly durable: DurableBefore | undefined
}

/** A task that joins the queue. */
export interface Held {
  readonly owner: string
  /** Whether other tasks must end first. */
  readonly isHeld?: boolean
  /** Whether it is a new task in the foreground, which does not wait for the end of a pause. */
  readonly isNewForeground?: boolean
}

export interface RegistryPart {
  /** The handlers of the part's events. No other part handles the same events. */
  readonly on: Partial<Handlers<RegistryEvent['type']>>
  /** Returns why a task must not be registered. */
  refuse?(registration: Registration): AdmissionRefusal | undefined
  /** Returns why a task is held in the queue. */
  hold?(task: Held): HoldReason | undefined
  /** A task was registered, continues from an earlier process (`earlier`), or has ended in one. */
  add?(entry: TaskEntry, scope: Scope, earlier?: Earlier): void
  /** A run begins. `limitMs` is the time until its deadline, in ms. */
  begin?(entry: TaskEntry, now: number, limitMs: number | undefined): void
  /** The run of a durable task begins to wait. */
  waits?(entry: TaskEntry, now: number): void
  /** The wait of a run is over. `limitMs` is the time until its deadline, in ms. */
  proceed?(entry: TaskEntry, now: number, limitMs: number | undefined): void
  /** A run is over. `isLast`: the task has ended; otherwise another run follows. */
  stop?(entry: TaskEntry, now: number, isLast: boolean): void
  /** A task has ended, and its record says so. */
  ended?(entry: TaskEntry, settlement: Settlement): void
  /** Tasks have a new owner. */
  ownerChanged?(owner: string): void
  /** The time limit that ends first. */
  next?(): Due | undefined
  /** Handles time limits that have ended. */
  due?(now: number, scope: Scope): void
}

export interface RegistryCore {
  readonly ledger: Ledger
  readonly history: History
  readonly changes: ChangeFeed
  readonly queue: StartQueue
  /** The effects to run after the transition, in order. */
  readonly effects: RegistryEffect[]
  /** Returns the time of the clock for deadlines, in ms. */
  readonly elapsed: () => number
  startNext(scope: Scope): void
  /** Lets the run of a durable task only wait: its time does not count. */
  waits(entry: TaskEntry): void
  /** Continues a run whose wait is over. */
  proceed(entry: TaskEntry): void
  /** Ends the time limits of a run that is over, and counts its time. */
  stop(entry: TaskEntry, isLast: boolean): void
  ownerChanged(owner: string): void
  /** Removes the oldest records that need not be kept. */
  prune(): void
}
