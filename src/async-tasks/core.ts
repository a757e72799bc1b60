/**
 * What the classes of this folder share: the registry actor, and the one way to change it.
 *
 * `transact` runs a change to its end, asks for the aborts it calls for, and then tells the host, in transition order and
 * never from inside a transition (A2). A change made by a handler is answered at once; its own handlers wait their turn.
 */
import { Subject } from 'rxjs'
import { createActor, isMachineSnapshot, type InspectionEvent } from 'xstate'
import { timeoutMessage } from '../../machines/async-task.js'
import type { TaskTransition } from '../../machines/records.js'
import type { TaskRegistryEvent, TaskRegistryRef } from '../../machines/task-registry.js'
import { TaskTable, type OutboxItem, type TaskEntry } from '../../machines/task-table.js'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import type { Run } from '../engine/engine.js'
import { indexTimers } from '../engine/timers.js'
import { chartsFor, noteHost, type RegistryCharts } from './charts.js'
import type { OutputLog } from './output-log.js'
import type { OpenQuestions } from './open-questions.js'
import type { OnError } from '../callbacks/error-report.js'

/** What belongs to a task besides its record: it goes when the entry goes. */
export interface Attachment {
  run?: Run
  log?: OutputLog
  /** What its run has asked. */
  questions?: OpenQuestions
  /** Stops listening to the registered `AbortController`. */
  unlink?: () => void
}

export interface CoreOptions {
  readonly max: number
  readonly notifyCancelled: boolean
  readonly clock: Clock
  readonly report: OnError
  readonly inspect: Inspect | undefined
  readonly machines: RegistryCharts
}

export class RegistryCore {
  readonly clock: Clock
  readonly report: OnError
  readonly registry: TaskRegistryRef
  readonly table: TaskTable
  /** Everything the outbox tells, in order; completes on disposal. Internal: its subscribers do not throw. */
  readonly told$ = new Subject<OutboxItem>()
  /** Each task's end, after the streams were told of it. Internal likewise. */
  readonly ended$ = new Subject<TaskTransition>()
  /** After each change has been told. */
  readonly idle$ = new Subject<void>()
  /** The runs that have not settled: a cancelled task's run outlives it. */
  readonly runs = new Set<Run>()
  readonly #attachments = new WeakMap<TaskEntry, Attachment>()
  readonly #aborts: { readonly entry: TaskEntry; readonly reason: unknown }[] = []
  readonly #inspections: (() => unknown)[] = []
  readonly #pushers = new Map<string, Set<object>>()
  #depth = 0
  #isTelling = false
  #isDisposed = false

  constructor(options: CoreOptions) {
    this.clock = options.clock
    this.report = options.report
    const { machines } = options
    const inspect = toInspectFunction(options.inspect)
    const { registry, task } = chartsFor(machines, inspect !== undefined)
    this.registry = createActor(registry, {
      id: 'registry',
      input: {
        max: options.max,
        notifyCancelled: options.notifyCancelled,
        now: () => this.clock.now(),
        task,
      },
      clock: {
        setTimeout: (run, ms) => setLongTimeout(this.clock, () => this.transact(run), ms),
        clearTimeout: (timer) => clearLongTimeout(this.clock, timer as LongTimer | undefined),
      },
      ...(inspect && { inspect: (event) => this.#noteInspection(inspect, event) }),
    })
    indexTimers(this.registry.system)
    noteHost(this.registry.system as object, {
      requestAbort: (taskId, timeoutMs) => this.#requestTimeoutAbort(taskId, timeoutMs),
      noteQuestions: (taskId, questions) => this.table.noteQuestions(taskId, questions),
    })
    this.table = this.registry.getSnapshot().context.table
    this.transact(() => this.registry.start())
  }

  /**
   * The host brings this owner its messages, so what it looks up itself does not count as told.
   * @returns what takes that back
   */
  notePusher(owner: string): () => void {
    const pushers = this.#pushers.get(owner) ?? new Set()
    const pusher = {}
    this.#pushers.set(owner, pushers.add(pusher))
    return () => {
      pushers.delete(pusher)
      if (pushers.size === 0 && this.#pushers.get(owner) === pushers) this.#pushers.delete(owner)
    }
  }

  /** Whether someone brings this owner its messages. */
  isPushed(owner: string): boolean {
    return this.#pushers.has(owner)
  }

  /** Forgets whoever brought this owner its messages. */
  forgetPushers(owner: string): void {
    this.#pushers.delete(owner)
  }

  /** Counts what an owner that only pulls has read as told. */
  acknowledgePulled(taskIds: readonly string[]): void {
    const pulled = taskIds.filter((id) => {
      const record = this.table.get(id)?.record
      return record?.delivery === 'owed' && !this.isPushed(record.owner)
    })
    if (pulled.length > 0) this.transact(() => this.send({ type: 'task.notify', taskIds: pulled }))
  }

  get isDisposed(): boolean {
    return this.#isDisposed
  }

  /** The changes of tasks that the host is told of. */
  get seq(): number {
    return this.table.seq
  }

  send(event: TaskRegistryEvent): void {
    if (!this.#isDisposed) this.registry.send(event)
  }

  attachment(entry: TaskEntry): Attachment {
    let attachment = this.#attachments.get(entry)
    if (attachment === undefined) this.#attachments.set(entry, (attachment = {}))
    return attachment
  }

  peekAttachment(entry: TaskEntry): Attachment | undefined {
    return this.#attachments.get(entry)
  }

  /** Runs a change and everything that must follow it. Host code never runs while the registry is in a transition. */
  transact<T>(change: () => T): T {
    this.#depth += 1
    try {
      return change()
    } finally {
      this.#runAborts()
      this.#depth -= 1
      if (this.#depth === 0 && this.#isDisposed) this.#stopRegistry()
      if (this.#depth === 0 && !this.#isTelling) this.#tell()
    }
  }

  /** Ends a task that runs. The aborts a cancellation calls for have happened when this returns. */
  cancel(entry: TaskEntry): boolean {
    const { ref } = entry
    if (ref === undefined) return false
    this.transact(() => {
      ref.send({ type: 'task.cancel' })
      if (entry.record.status === 'cancelled') this.#aborts.push({ entry, reason: undefined })
    })
    return entry.record.status === 'cancelled'
  }

  /** Lets an abort of the host's own controller cancel the task (A8). */
  link(entry: TaskEntry, controller: AbortController): void {
    const { signal } = controller
    const onAbort = (): void => {
      this.cancel(entry)
    }
    isolateAbortListeners(signal, (error) => this.report(error, { source: 'abort-listener' }))
    signal.addEventListener('abort', onAbort, { once: true })
    this.attachment(entry).unlink = () => signal.removeEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  }

  /** Ends the registry: nothing is told from now on. */
  dispose(): void {
    this.transact(() => {
      // The deliveries end with the streams, while their parent can still hear of it: one that calls this from inside a
      // transition of its own ends after that, so the parent stops when the outermost change is over.
      this.told$.complete()
      this.idle$.complete()
      this.#isDisposed = true
    })
  }

  #stopRegistry(): void {
    if (this.registry.getSnapshot().status === 'active') this.registry.send({ type: 'registry.dispose' })
  }

  #requestTimeoutAbort(taskId: string, timeoutMs: number): void {
    const entry = this.table.get(taskId)
    const reason = Object.assign(new Error(timeoutMessage(timeoutMs)), { name: 'TimeoutError' })
    if (entry !== undefined) this.#aborts.push({ entry, reason })
  }

  #runAborts(): void {
    for (let next = this.#aborts.shift(); next !== undefined; next = this.#aborts.shift()) {
      const { entry, reason } = next
      const attachment = this.#attachments.get(entry)
      attachment?.unlink?.()
      try {
        entry.record.abortController?.abort(reason)
      } catch (error) {
        this.report(error, { source: 'abort-listener', taskId: entry.record.id })
      }
      attachment?.run?.abort(reason)
    }
  }

  #tell(): void {
    this.#isTelling = true
    try {
      const { outbox } = this.table
      do {
        this.#tellInspector()
        for (const item of outbox.splice(0)) this.#tellItem(item)
        if (outbox.length === 0) this.idle$.next()
      } while (outbox.length > 0 || this.#inspections.length > 0)
    } finally {
      this.#isTelling = false
    }
  }

  #tellItem(item: OutboxItem): void {
    this.told$.next(item)
    if (item.type === 'questions') this.#attachments.get(item.entry)?.questions?.withdraw(item.entry.record)
    if (item.type !== 'transition' || !isEnd(item.transition)) return
    this.#attachments.get(item.entry)?.questions?.withdraw(item.entry.record)
    this.ended$.next(item.transition)
    this.#attachments.get(item.entry)?.unlink?.()
    this.table.announce(item.entry)
    if (this.table.hasExcess()) this.send({ type: 'history.prune' })
  }

  #noteInspection(inspect: (event: InspectionEvent) => unknown, event: InspectionEvent): void {
    const noted = withPresentCounts(event)
    this.#inspections.push(() => inspect(noted))
  }

  #tellInspector(): void {
    for (const inspect of this.#inspections.splice(0)) {
      callIsolated(inspect, (error) => this.report(error, { source: 'inspector' }))
    }
  }
}

/** Whether a transition is a task's end. */
export function isEnd(transition: TaskTransition): boolean {
  return transition.kind === 'status' && transition.to !== 'running'
}

/** The registry's table changes in place: what an inspector is told later must show its counts as they were. */
function withPresentCounts(event: InspectionEvent): InspectionEvent {
  if (!('snapshot' in event) || !isMachineSnapshot(event.snapshot)) return event
  const { snapshot } = event
  const context = snapshot.context as { readonly table?: unknown }
  if (!(context.table instanceof TaskTable)) return event
  const counted: typeof snapshot = { ...snapshot, context: { ...context, table: context.table.toJSON() } }
  return { ...event, snapshot: counted }
}

const cores = new WeakMap<object, RegistryCore>()

/** Makes a manager's core known to the other classes of this folder, and to nobody else. */
export function registerCore(manager: object, core: RegistryCore): void {
  cores.set(manager, core)
}

/** The core of a manager. */
export function coreOf(manager: object): RegistryCore {
  const core = cores.get(manager)
  if (core === undefined) throw new TypeError('expected an AsyncTaskManager')
  return core
}
