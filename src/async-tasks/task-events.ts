/** The streams of the manager and the host's handlers. An exception in one callback does not affect others (promise A2). */
import { filter, map, type Observable, type Subscriber } from 'rxjs'
import type {
  AsyncTaskInfo,
  CancelledTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  SettledTaskInfo,
  TaskProgress,
  TaskQuestion,
  TaskTransition,
} from '../../machines/records.js'
import { hasEnded, type TerminalStatus } from '../../machines/task-status.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { InvalidInputError } from '../errors.js'
import type { Feature } from './feature.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import type { TaskRegistry } from './registry.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'

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

interface Registration {
  readonly handler: (task: never) => unknown
  /** The number of the last change before the registration. The handler is called only for later changes. */
  readonly since: number
  isActive: boolean
}

type Handlers = Record<TerminalStatus, Set<Registration>>

export interface HandledTasks {
  completed: CompletedTaskInfo
  failed: FailedTaskInfo
  cancelled: CancelledTaskInfo
}

export class TaskEvents implements Feature {
  readonly transitions$: Observable<TaskTransition>
  readonly settled$: Observable<SettledTaskInfo>
  readonly owed$: Observable<OwnerCounts>
  readonly running$: Observable<OwnerCounts>
  readonly progress$: Observable<TaskProgressEvent>
  readonly questions$: Observable<TaskQuestionsEvent>
  readonly #registry: TaskRegistry
  readonly #handlers: Handlers = { completed: new Set(), failed: new Set(), cancelled: new Set() }
  readonly #progressSubscribers = new Set<Subscriber<TaskProgressEvent>>()

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
        .subscribe(subscriber as Subscriber<TaskTransition | undefined>)
    })
    this.settled$ = this.transitions$.pipe(
      filter(isEnd),
      map(({ record }) => record as SettledTaskInfo),
    )
    this.owed$ = this.#counts('owed', report)
    this.running$ = this.#counts('running', report)
    this.progress$ = new IsolatedObservable<TaskProgressEvent>(report, (subscriber) => {
      if (registry.isDisposed) {
        subscriber.complete()
        return undefined
      }
      this.#progressSubscribers.add(subscriber)
      return () => this.#progressSubscribers.delete(subscriber)
    })
    this.questions$ = new IsolatedObservable<TaskQuestionsEvent>(report, (subscriber) =>
      registry.notifications$
        .pipe(
          map((item) => (item.type === 'questions' ? questionsOf(item.entry.record) : undefined)),
          filter((event) => event !== undefined),
        )
        .subscribe(subscriber),
    )
  }

  /** Calls `handler` once for each task that ends with this status. Returns an unsubscribe function. */
  on<S extends TerminalStatus>(status: S, handler: (task: HandledTasks[S]) => void): () => void {
    if (typeof handler !== 'function') throw new InvalidInputError('handler', handler, 'a function')
    const registration: Registration = { handler, since: this.#registry.seq, isActive: true }
    if (!this.#registry.isDisposed) this.#handlers[status].add(registration)
    return () => {
      registration.isActive = false
      this.#handlers[status].delete(registration)
    }
  }

  /** Emits a progress report. Progress is not a transition, so it has no position in the order of transitions. */
  emitProgress(record: AsyncTaskInfo, progress: TaskProgress): void {
    for (const subscriber of [...this.#progressSubscribers]) {
      subscriber.next({ taskId: record.id, owner: record.owner, progress })
    }
  }

  /** Calls the handlers for the end of a task, in the order of their registration. */
  ended(_entry: TaskEntry, transition: TaskTransition): void {
    const { record } = transition
    for (const registration of [...this.#handlers[record.status as TerminalStatus]]) {
      if (!registration.isActive || registration.since >= transition.seq) continue
      callIsolated(
        () => registration.handler(record as never),
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

  /** Completes the progress stream, which does not depend on the registry's notifications, and removes the handlers. */
  closing(): void {
    for (const handlers of Object.values(this.#handlers)) {
      for (const registration of handlers) registration.isActive = false
      handlers.clear()
    }
    for (const subscriber of [...this.#progressSubscribers]) subscriber.complete()
    this.#progressSubscribers.clear()
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
