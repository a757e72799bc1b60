/** Tells the host what happened: the seed's three handlers, and the streams. Every callback is isolated (A2). */
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
  TerminalStatus,
} from '../../machines/records.js'
import { InvalidInputError } from '../errors.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { isEnd, type RegistryCore } from './core.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'

/** How many tasks each owner has; owners that have none are absent. */
export type OwnerCounts = ReadonlyMap<string, number>

/** How far a task has come. */
export interface TaskProgressEvent {
  /** The task whose run reported. */
  readonly taskId: string
  /** The owner of the task. */
  readonly owner: string
  /** How far it has come. */
  readonly progress: TaskProgress
}

/** What the run of a task waits to be told, after that has changed. */
export interface TaskQuestionsEvent {
  /** The task that asks. */
  readonly taskId: string
  /** Whom it is for. */
  readonly owner: string
  /** Empty when it waits for nothing any more. */
  readonly questions: readonly TaskQuestion[]
}

interface Registration {
  readonly handler: (task: never) => unknown
  /** Only what happens after this change is told. */
  readonly since: number
  isActive: boolean
}

type Handlers = Record<TerminalStatus, Set<Registration>>

export interface HandledTasks {
  completed: CompletedTaskInfo
  failed: FailedTaskInfo
  cancelled: CancelledTaskInfo
}

export class TaskEvents {
  readonly transitions$: Observable<TaskTransition>
  readonly settled$: Observable<SettledTaskInfo>
  readonly owed$: Observable<OwnerCounts>
  readonly running$: Observable<OwnerCounts>
  readonly progress$: Observable<TaskProgressEvent>
  readonly questions$: Observable<TaskQuestionsEvent>
  readonly #core: RegistryCore
  readonly #handlers: Handlers = { completed: new Set(), failed: new Set(), cancelled: new Set() }
  readonly #progressSubscribers = new Set<Subscriber<TaskProgressEvent>>()

  constructor(core: RegistryCore) {
    this.#core = core
    const report = (error: unknown): void => core.report(error, { source: 'stream' })
    this.transitions$ = new IsolatedObservable<TaskTransition>(report, (subscriber) => {
      const since = core.seq
      return core.told$
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
      if (core.isDisposed) {
        subscriber.complete()
        return undefined
      }
      this.#progressSubscribers.add(subscriber)
      return () => this.#progressSubscribers.delete(subscriber)
    })
    this.questions$ = new IsolatedObservable<TaskQuestionsEvent>(report, (subscriber) =>
      core.told$
        .pipe(
          map((item) => (item.type === 'questions' ? questionsOf(item.entry.record) : undefined)),
          filter((event) => event !== undefined),
        )
        .subscribe(subscriber),
    )
    core.ended$.subscribe((transition) => {
      this.#callHandlers(transition)
    })
    core.told$.subscribe({
      complete: () => {
        this.#close()
      },
    })
  }

  /** Calls `handler` once for each task that ends so; returns what takes it back. */
  on<S extends TerminalStatus>(status: S, handler: (task: HandledTasks[S]) => void): () => void {
    if (typeof handler !== 'function') throw new InvalidInputError('handler', handler, 'a function')
    const registration: Registration = { handler, since: this.#core.seq, isActive: true }
    if (!this.#core.isDisposed) this.#handlers[status].add(registration)
    return () => {
      registration.isActive = false
      this.#handlers[status].delete(registration)
    }
  }

  /** Tells of progress; it is no change of state and has no place in the order of transitions. */
  emitProgress(record: AsyncTaskInfo, progress: TaskProgress): void {
    for (const subscriber of [...this.#progressSubscribers]) {
      subscriber.next({ taskId: record.id, owner: record.owner, progress })
    }
  }

  #callHandlers(transition: TaskTransition): void {
    const { record } = transition
    for (const registration of [...this.#handlers[record.status as TerminalStatus]]) {
      if (!registration.isActive || registration.since >= transition.seq) continue
      callIsolated(
        () => registration.handler(record as never),
        (error) => this.#core.report(error, { source: 'handler', taskId: record.id }),
      )
    }
  }

  #counts(kind: 'owed' | 'running', report: (error: unknown) => void): Observable<OwnerCounts> {
    const core = this.#core
    return new IsolatedObservable<OwnerCounts>(report, (subscriber) => {
      let last = core.table.countsByOwner(kind)
      const emitIfChanged = (): void => {
        const counts = core.table.countsByOwner(kind)
        if (haveSameCounts(counts, last)) return
        last = counts
        subscriber.next(counts)
      }
      if (core.isDisposed) {
        subscriber.next(last)
        subscriber.complete()
        return undefined
      }
      // Subscribed before the first counts are told: what their subscriber changes is told as well.
      const subscription = core.told$.subscribe({ next: emitIfChanged, complete: () => subscriber.complete() })
      subscriber.next(last)
      return subscription
    })
  }

  #close(): void {
    for (const handlers of Object.values(this.#handlers)) {
      for (const registration of handlers) registration.isActive = false
      handlers.clear()
    }
    for (const subscriber of [...this.#progressSubscribers]) subscriber.complete()
    this.#progressSubscribers.clear()
  }
}

function questionsOf({ id, owner, questions = [] }: AsyncTaskInfo): TaskQuestionsEvent {
  return { taskId: id, owner, questions }
}

function haveSameCounts(a: OwnerCounts, b: OwnerCounts): boolean {
  if (a.size !== b.size) return false
  for (const [owner, count] of a) if (b.get(owner) !== count) return false
  return true
}
