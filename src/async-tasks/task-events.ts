/** The host's handlers and streams. All callbacks are isolated (promise A2). */
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

/** The number of tasks of each owner. Owners without tasks are absent. */
export type OwnerCounts = ReadonlyMap<string, number>

/** A progress report of a task. */
export interface TaskProgressEvent {
  /** The task that reports. */
  readonly taskId: string
  /** The task's owner. */
  readonly owner: string
  /** The progress as reported. */
  readonly progress: TaskProgress
}

/** The open questions of a task, after a change. */
export interface TaskQuestionsEvent {
  /** The task that asks. */
  readonly taskId: string
  /** The owner of the task. */
  readonly owner: string
  /** The open questions; empty if there are none. */
  readonly questions: readonly TaskQuestion[]
}

interface Registration {
  readonly handler: (task: never) => unknown
  /** The handler is only notified of later changes. */
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

  /** Emits progress, which is not a transition and has no order among them. */
  emitProgress(record: AsyncTaskInfo, progress: TaskProgress): void {
    for (const subscriber of [...this.#progressSubscribers]) {
      subscriber.next({ taskId: record.id, owner: record.owner, progress })
    }
  }

  /** Calls the handlers of a task's end, in the order of their registration. */
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
      // Subscribes before emitting the first counts, so that changes made by the subscriber are emitted too.
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

  /** Completes the streams that have no other source, and removes the handlers. */
  closing(): void {
    for (const handlers of Object.values(this.#handlers)) {
      for (const registration of handlers) registration.isActive = false
      handlers.clear()
    }
    for (const subscriber of [...this.#progressSubscribers]) subscriber.complete()
    this.#progressSubscribers.clear()
  }
}

/** The streams and handlers of a registry. */
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
