/** The streams of the manager and the host's handlers. An exception in one callback does not affect others (promise A2). */
import { filter, map, type Observable } from 'rxjs'
import type { RegistryNotification } from '../../machines/change-feed.js'
import type { AsyncTaskInfo, SettledTaskInfo, TaskProgress, TaskQuestion } from '../../machines/records.js'
import type { RecordField } from '../../machines/record-fields.js'
import type { TaskTransition } from '../../machines/transitions.js'
import {
  hasEnded,
  outcomeOf,
  type StatusOf,
  type TaskOutcome,
  type TerminalStatus,
} from '../../machines/task-status.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { InvalidInputError } from '../errors.js'
import type { Feature } from './feature.js'
import { callContext, type CallContext } from '../isolation/call-context.js'
import { callIsolated } from '../isolation/isolated-call.js'
import type { Recipient } from '../isolation/own-context.js'
import type { TaskRegistry } from './registry.js'
import { IsolatedObservable } from '../isolation/isolated-observable.js'

/** The number of tasks of each owner. Has no entry for an owner without tasks. */
export type OwnerCounts = ReadonlyMap<string, number>

/** A progress report of a running task. */
export interface TaskProgressEvent {
  /** The id of the task. */
  readonly taskId: string
  /** The owner of the task. */
  readonly owner: string
  /** What the run has reported. */
  readonly progress: TaskProgress
}

/** The open questions of a task after a change. */
export interface TaskQuestionsEvent {
  /** The id of the task. */
  readonly taskId: string
  /** The owner of the task. */
  readonly owner: string
  /** The open questions; empty if there are none. */
  readonly questions: readonly TaskQuestion[]
}

/** The record of a running task after a report, and the field that was reported. */
type TaskReport = Readonly<{ record: AsyncTaskInfo; field: RecordField }>

interface Registration {
  readonly handler: (task: never) => unknown
  readonly context: CallContext
  /** The number of the last change before the registration. The handler is called only for later changes. */
  readonly since: number
  isActive: boolean
}

type EndedTask<Outcome extends TaskOutcome> = Extract<SettledTaskInfo, { readonly status: StatusOf<Outcome> }>

export class TaskEvents implements Feature {
  readonly transitions$: Observable<TaskTransition>
  readonly settled$: Observable<SettledTaskInfo>
  readonly owed$: Observable<OwnerCounts>
  readonly running$: Observable<OwnerCounts>
  readonly progress$: Observable<TaskProgressEvent>
  /** Emits each report of a run or host, of progress too. */
  readonly reports$: Observable<TaskReport>
  readonly questions$: Observable<TaskQuestionsEvent>
  readonly #registry: TaskRegistry
  readonly #handlers: Record<TaskOutcome, Set<Registration>> = {
    succeeded: new Set(),
    failed: new Set(),
    stopped: new Set(),
  }
  readonly #reportSubscribers = new Set<Recipient<TaskReport>>()

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    const report = (error: unknown): void => registry.report(error, { source: 'stream' })
    this.transitions$ = new IsolatedObservable<TaskTransition>(report, (subscriber) => {
      const since = registry.seq
      return registry.notifications$
        .pipe(
          map((item) => (item.type === 'transition' ? item.transition : undefined)),
          filter((transition) => transition !== undefined && transition.seq > since),
        )
        .subscribe(subscriber as Recipient<TaskTransition | undefined>)
    })
    this.settled$ = this.transitions$.pipe(
      filter((transition) => isEnd(transition) && transition.record.isNote !== true),
      map(({ record }) => record as SettledTaskInfo),
    )
    this.owed$ = this.#counts('owed', report)
    this.running$ = this.#counts('running', report)
    this.reports$ = new IsolatedObservable<TaskReport>(report, (subscriber) => {
      if (registry.isDisposed) {
        subscriber.complete()
        return undefined
      }
      this.#reportSubscribers.add(subscriber)
      return () => this.#reportSubscribers.delete(subscriber)
    })
    this.progress$ = this.reports$.pipe(
      map(({ record: { id, owner, progress }, field }) =>
        field === 'progress' && progress !== undefined ? { taskId: id, owner, progress } : undefined,
      ),
      filter((event) => event !== undefined),
    )
    this.questions$ = this.of('questions', ({ entry }) => questionsOf(entry.record))
  }

  of<Type extends RegistryNotification['type'], Event>(
    type: Type,
    toEvent: (notification: Extract<RegistryNotification, { readonly type: Type }>) => Event,
  ): Observable<Event> {
    const registry = this.#registry
    const isOfType = (item: RegistryNotification): item is Parameters<typeof toEvent>[0] => item.type === type
    return new IsolatedObservable<Event>(
      (error) => registry.report(error, { source: 'stream' }),
      (subscriber) => registry.notifications$.pipe(filter(isOfType), map(toEvent)).subscribe(subscriber),
    )
  }

  /** Calls `handler` once for each task that ends in this way. Returns an unsubscribe function. */
  on<Outcome extends TaskOutcome>(outcome: Outcome, handler: (task: EndedTask<Outcome>) => void): () => void {
    if (typeof handler !== 'function') throw new InvalidInputError('handler', handler, 'a function')
    const registration: Registration = { handler, context: callContext(), since: this.#registry.seq, isActive: true }
    if (!this.#registry.isDisposed) this.#handlers[outcome].add(registration)
    return () => {
      registration.isActive = false
      this.#handlers[outcome].delete(registration)
    }
  }

  /** Emits a report. A report is not a transition, so it has no position in the order of transitions. */
  emitReport(record: AsyncTaskInfo, field: RecordField): void {
    for (const subscriber of [...this.#reportSubscribers]) subscriber.next({ record, field })
  }

  /** Calls the handlers for the end of a task, in the order of their registration. */
  ended(_entry: TaskEntry, transition: TaskTransition): void {
    const { record } = transition
    if (record.isNote === true) return
    for (const registration of [...this.#handlers[outcomeOf(record.status as TerminalStatus)]]) {
      if (!registration.isActive || registration.since >= transition.seq) continue
      callIsolated(
        () => registration.context.runInAsyncScope(() => registration.handler(record as never)),
        (error) => this.#registry.report(error, { source: 'handler', taskId: record.id }),
      )
    }
  }

  #counts(kind: 'owed' | 'running', report: (error: unknown) => void): Observable<OwnerCounts> {
    const registry = this.#registry
    return new IsolatedObservable<OwnerCounts>(report, (subscriber) => {
      let last = registry.ledger.countsByOwner(kind)
      const emitIfChanged = (): void => {
        const counts = registry.ledger.countsByOwner(kind)
        if (haveSameCounts(counts, last)) return
        last = counts
        subscriber.next(counts)
      }
      if (registry.isDisposed) {
        subscriber.next(last)
        subscriber.complete()
        return undefined
      }
      // Subscribes to changes before it emits the first counts. Otherwise it would miss a change that the subscriber makes when it receives them.
      const subscription = registry.notifications$.subscribe({
        next: ({ type }) => {
          if (type === 'transition') emitIfChanged()
        },
        complete: () => subscriber.complete(),
      })
      subscriber.next(last)
      return subscription
    })
  }

  /** Completes the streams of reports, which do not depend on the registry's notifications, and removes the handlers. */
  closing(): void {
    for (const handlers of Object.values(this.#handlers)) {
      for (const registration of handlers) registration.isActive = false
      handlers.clear()
    }
    for (const subscriber of [...this.#reportSubscribers]) subscriber.complete()
    this.#reportSubscribers.clear()
  }
}

export const taskEvents = (registry: TaskRegistry): TaskEvents => new TaskEvents(registry)

function questionsOf({ id, owner, questions = [] }: AsyncTaskInfo): TaskQuestionsEvent {
  return { taskId: id, owner, questions }
}

function haveSameCounts(a: OwnerCounts, b: OwnerCounts): boolean {
  if (a.size !== b.size) return false
  for (const [owner, count] of a) if (b.get(owner) !== count) return false
  return true
}

const isEnd = (transition: TaskTransition): boolean => transition.kind === 'status' && hasEnded(transition.to)
