/**
 * Keeps a store in step with the registry of one manager.
 *
 * Changes are collected and written together, before anything of them is notified (K2) and before a run starts (K1). A lease and a cancellation
 * are written at once (K3, K6). A write that fails is repeated until it succeeds; meanwhile nothing that it holds is notified (K10).
 */
import type { RegistryNotification } from '../../../machines/journal.js'
import type { DeliveryObserver } from '../../../machines/ledger.js'
import { refOf } from '../../../machines/owed-questions.js'
import type { OwedQuestion, QuestionStanding, TaskEntry } from '../../../machines/task-entry.js'
import { hasEnded, holdsSlot, isOtherRun } from '../../../machines/task-status.js'
import type { OnError } from '../../callbacks/error-report.js'
import type { Clock } from '../../clock.js'
import { defined } from '../../defined.js'
import { nodeBuiltin } from '../../node-builtins.js'
import { toStartedProgram, type StartedProgram } from '../../engine/reap.js'
import { isPossibleRepeat } from '../delivery/notifications.js'
import { useStore, type ContentsOf } from '../../store/shared-opening.js'
import { folderName, type RunName } from '../output/run-files.js'
import { programIn, reducedRecord, storedRecord } from './stored-records.js'
import type { Store, StoredDelivery, StoredFeatureState, StoredJson, StoredTask } from '../../store/store.js'
import { PastTasks } from '../../kernel/past-tasks.js'
import { StoreSync } from '../../kernel/store-sync.js'
import { StoreWriter, type StoreWait, type StoreWriterOptions } from '../../store/store-writer.js'

/** The field of a stored record for the message that delivered it. */
export const DELIVERED_BY = 'deliveredBy'

/** An accepted message counts as confirmed when as many have been accepted after it, or when it was sent as long ago (a day). */
const MAX_UNCONFIRMED = { messages: 1000, ms: 86_400_000 } as const

const NOTHING = { tasks: [], deliveries: [], featureStates: [] } as const

export interface PersistenceOptions {
  readonly store: Store
  readonly clock: Clock
  readonly report: OnError
  /** What is notified of a change waits there until the change is stored. */
  readonly outbox: StoreWriterOptions['outbox']
  /** A delivered result needs no copy any longer: its owner has confirmed the message. */
  readonly onConfirmed: (entries: readonly TaskEntry[]) => void
  /** What is stored of the open questions of a task; undefined when they end with this process. */
  readonly standingsOf?: (entry: TaskEntry) => Readonly<Record<string, QuestionStanding>> | undefined
}

/** What is stored of a task besides its record. */
export interface TaskStorage {
  /** Which run of the task this is. */
  readonly attempt: number
  /** When its time limit passes, in ms since the epoch. */
  readonly deadlineAt: number | undefined
  /** What is needed to run it again, or to find its program. */
  readonly run: StoredJson
}

interface OpenDelivery {
  readonly id: string
  readonly owner: string
  readonly at: number
  state: StoredDelivery['state']
  readonly entries: Set<TaskEntry>
  readonly questions: Set<OwedQuestion>
}

export class Persistence implements DeliveryObserver {
  /** Where tasks go that are not kept any longer. */
  readonly past: PastTasks
  readonly #options: PersistenceOptions
  readonly #storage = new WeakMap<TaskEntry, TaskStorage>()
  readonly #sync = new StoreSync<{ tasks: TaskEntry; deliveries: OpenDelivery; featureStates: StoredFeatureState }>({
    tasks: { rowOf: (entry, isReduced) => this.#rowOf(entry, isReduced), isReducible: true },
    deliveries: { rowOf: deliveryRow },
    featureStates: { rowOf: (state) => state },
  })
  /** Their launches were refused: nothing of them is stored. */
  readonly #withdrawn = new WeakSet<TaskEntry>()
  readonly #deliveries = new Map<string, OpenDelivery>()
  /** The deliveries in which a task is, while they are neither confirmed nor given back. */
  readonly #carried = new Map<TaskEntry, number>()
  readonly #close: () => void | Promise<void>
  readonly #writer: StoreWriter
  #keepsSent = false
  #contents: ContentsOf<'async tasks'> | undefined

  /** Opens the store. @throws StoreInUseError, StoreError */
  constructor(options: PersistenceOptions) {
    this.#options = options
    const { store, clock, report, outbox } = options
    const opened = useStore(store, 'async tasks')
    const reportFailure = (error: unknown): void => report(error, { source: 'store' })
    this.#close = opened.close
    this.#contents = opened.contents
    this.past = new PastTasks(store.history, reportFailure)
    this.#writer = new StoreWriter({ store, clock, outbox, report: reportFailure, pending: this.#sync })
  }

  /** What errors call the store. */
  get name(): string {
    return this.#options.store.name ?? 'the store'
  }

  /** Whether nothing of a task is stored, because it was not started. */
  isWithdrawn(entry: TaskEntry): boolean {
    return this.#withdrawn.has(entry)
  }

  /** What the store held when it was opened; it is not kept. */
  takeContents(): ContentsOf<'async tasks'> {
    const contents = this.#contents ?? NOTHING
    this.#contents = undefined
    return contents
  }

  /** The folder for the files of one run; undefined for a store that has none. */
  folderOf(run: RunName): string | undefined {
    const { directory } = this.#options.store
    return directory === undefined ? undefined : `${directory}/${folderName(run)}`
  }

  /** The folders of all runs that have files. */
  folders(): ReadonlySet<string> {
    const { directory } = this.#options.store
    if (directory === undefined) return new Set()
    try {
      const names = nodeBuiltin('node:fs').readdirSync(directory)
      return new Set(names.map((name) => `${directory}/${name}`))
    } catch {
      // No run has had files yet.
      return new Set()
    }
  }

  // Changes

  /** Notes the launch of a task. */
  launch(entry: TaskEntry, storage: TaskStorage): void {
    this.#storage.set(entry, storage)
    this.noteChange(entry)
  }

  /** The launch of a task could not be stored. */
  withdraw(entry: TaskEntry): void {
    this.#withdrawn.add(entry)
    this.#sync.prune('tasks', entry.record.id)
  }

  /** The launch of a task was stored, and is not to be. */
  withdrawStored(entry: TaskEntry): void {
    this.#withdrawn.add(entry)
    this.#sync.remove('tasks', entry.record.id)
  }

  /** Stores which program a task runs. Rejects with StoreError when that cannot be done now. */
  async saveProgram(entry: TaskEntry, program: StartedProgram): Promise<void> {
    this.#setProgram(entry, { program })
    try {
      await this.stored()
    } catch (error) {
      this.#setProgram(entry, {})
      throw error
    }
  }

  #setProgram(entry: TaskEntry, started: { readonly program?: StartedProgram }): void {
    const storage = this.#storageOf(entry)
    const { program: _, ...run } = storage.run
    this.#storage.set(entry, { ...storage, run: { ...run, ...started } })
    this.noteChange(entry)
  }

  /** The program that the present run of a task has stored. */
  programOf(entry: TaskEntry): StartedProgram | undefined {
    return toStartedProgram(this.#storageOf(entry).run['program'])
  }

  /** What names a task outside of its store; undefined where nothing else knows it. */
  keyOf(entry: TaskEntry): string | undefined {
    const { key } = this.#storageOf(entry).run
    return typeof key === 'string' ? key : undefined
  }

  setRun(entry: TaskEntry, fields: StoredJson): void {
    const storage = this.#storageOf(entry)
    this.#storage.set(entry, { ...storage, run: { ...storage.run, ...fields } })
    this.noteChange(entry)
  }

  /** The next run of a task waits: it is stored when it may start, and how long it was to wait. Both go with that start. */
  setDelay(entry: TaskEntry, delayMs: number): void {
    const storage = this.#storageOf(entry)
    const notBefore = this.#options.clock.now() + delayMs
    this.#storage.set(entry, { ...storage, run: { ...storage.run, notBefore, delayMs } })
  }

  /** Stores what a feature keeps, in one write with everything that changes in the same tick. @param id unique within the feature */
  keepState(feature: string, id: string, data: StoredJson): void {
    const row = { id: `${feature}/${id}`, feature, data }
    this.#sync.put('featureStates', row.id, row)
  }

  dropState(feature: string, id: string): void {
    this.#sync.remove('featureStates', `${feature}/${id}`)
  }

  /** The record has changed in a way that nobody is notified of. */
  noteChange(entry: TaskEntry): void {
    if (!this.#withdrawn.has(entry)) this.#sync.put('tasks', entry.record.id, entry)
  }

  /** A task has started after it had waited, or waits for its next run. */
  #setAttempt(entry: TaskEntry): void {
    const { status, attempt = 1, startedAt = 0, timeoutMs } = entry.record
    const { isOverdue: _, program: _program, notBefore, delayMs, isWaiting: _wait, ...run } = this.#storageOf(entry).run
    const isQueued = !holdsSlot(status)
    const deadlineAt = timeoutMs === undefined || isQueued ? undefined : startedAt + timeoutMs
    const wait = isQueued && notBefore !== undefined ? { notBefore, delayMs } : undefined
    this.#storage.set(entry, { attempt, deadlineAt, run: { ...run, ...wait, place: entry.serial } })
  }

  /** A task was read from the store; it is written again if it has changed since. */
  restore(
    entry: TaskEntry,
    { attempt, deadlineAt, run = {} }: Pick<StoredTask, 'attempt' | 'deadlineAt' | 'run'>,
    hasChanged: boolean,
  ): void {
    this.#storage.set(entry, { attempt, deadlineAt, run })
    if (hasChanged) this.noteChange(entry)
  }

  /** Notes a change that the registry has made. */
  note(notification: RegistryNotification): void {
    if (notification.type === 'limit' && notification.state === 'stopping') this.#setOverdue(notification.entry)
    if (notification.type !== 'transition') return
    const { transition, entry } = notification
    if (transition.kind === 'history') return
    this.noteChange(entry)
    if (transition.kind === 'status' && isOtherRun(transition.from, transition.to)) this.#setAttempt(entry)
  }

  /** The record of a task is not kept any longer: its row goes with the next write. */
  forget(id: string): void {
    this.#sync.prune('tasks', id)
  }

  /** The time of a task has passed: it is not run again. */
  #setOverdue(entry: TaskEntry): void {
    const storage = this.#storageOf(entry)
    this.#storage.set(entry, { ...storage, run: { ...storage.run, isOverdue: true } })
    this.noteChange(entry)
  }

  /** A message is going to carry a result, or a question; the message is stored before it is sent. The questions of other tasks end with their process. */
  onCarried(id: string, entry: TaskEntry, question?: OwedQuestion): void {
    if (question !== undefined && this.#options.standingsOf?.(entry) === undefined) return
    const owner = question?.owner ?? entry.record.owner
    const delivery: OpenDelivery = this.#deliveries.get(id) ?? {
      id,
      owner,
      at: this.#options.clock.now(),
      state: 'sent',
      entries: new Set(),
      questions: new Set(),
    }
    this.#deliveries.set(id, delivery)
    this.#sync.put('deliveries', id, delivery)
    if (question !== undefined) {
      delivery.questions.add(question)
      return
    }
    if (!delivery.entries.has(entry)) this.#carry(entry, 1)
    delivery.entries.add(entry)
  }

  onAsked(entry: TaskEntry): void {
    if (this.#options.standingsOf?.(entry) !== undefined) this.noteChange(entry)
  }

  /**
   * The message was accepted. That confirms the messages that its owner accepted before (K5), but none that is not stored yet: one answer may have two.
   * What it repeats is confirmed at once: otherwise a host that cannot say what has arrived would repeat it after each crash.
   */
  onAccepted(deliveryId: string, carried?: ReadonlySet<TaskEntry>): void {
    const accepted = this.#deliveries.get(deliveryId)
    if (accepted === undefined || accepted.state === 'accepted') return
    for (const entry of [...accepted.entries]) {
      if (carried?.has(entry) === false || isPossibleRepeat(entry.record)) this.#takeOut(accepted, entry)
    }
    for (const question of accepted.questions) if (question.isRepeat) accepted.questions.delete(question)
    for (const [id, { owner, state }] of this.#deliveries) {
      const isEarlier = state === 'accepted' && !this.#sync.isPending('deliveries', id)
      if (isEarlier && owner === accepted.owner) this.#closeDelivery(id)
    }
    accepted.state = 'accepted'
    this.#sync.put('deliveries', deliveryId, accepted)
    if (isEmpty(accepted)) this.#closeDelivery(deliveryId)
    else {
      // The last accepted one comes last.
      this.#deliveries.delete(deliveryId)
      this.#deliveries.set(deliveryId, accepted)
    }
    this.#confirmOldest()
  }

  /** An owner that has gone confirms nothing, and its results would be kept for ever. */
  #confirmOldest(): void {
    const earliest = this.#options.clock.now() - MAX_UNCONFIRMED.ms
    for (const [id, { state, at }] of this.#deliveries) {
      if (state !== 'accepted') continue
      if (this.#deliveries.size <= MAX_UNCONFIRMED.messages && at >= earliest) return
      this.#closeDelivery(id)
    }
  }

  /** The host has delivered a result by itself: no message that carries it can be uncertain of it. */
  onMarked(entry: TaskEntry): void {
    if (!this.isCarried(entry)) return
    for (const [id, delivery] of this.#deliveries) {
      if (!delivery.entries.has(entry)) continue
      this.#takeOut(delivery, entry)
      this.#sync.put('deliveries', id, delivery)
      if (isEmpty(delivery)) this.#closeDelivery(id)
    }
  }

  /** The host has the message in its transcript. False when there is no such message, or it was confirmed before. */
  confirmDelivery(deliveryId: string): boolean {
    if (this.#deliveries.get(deliveryId)?.state !== 'accepted') return false
    this.#closeDelivery(deliveryId)
    return true
  }

  /** It has been found out whether a message of an earlier process arrived. */
  forgetDelivery(deliveryId: string): void {
    this.#closeDelivery(deliveryId)
    this.#sync.remove('deliveries', deliveryId)
  }

  /** Confirms what an owner (by default, every owner) has accepted: it is gone, and accepts no other message. */
  confirmOwner(owner?: string): void {
    for (const [id, delivery] of this.#deliveries) {
      const isOfOwner = owner === undefined || delivery.owner === owner
      if (isOfOwner && delivery.state === 'accepted') this.#closeDelivery(id)
    }
  }

  /** The host ends: it will not say what becomes of the messages that it has sent. Giving them up does not mean that they were not accepted. */
  keepSent(): void {
    this.#keepsSent = true
  }

  /** The message was not accepted: what it carried is owed again. */
  onReleased(deliveryId: string): void {
    if (this.#keepsSent) return
    if (this.#deliveries.get(deliveryId)?.state === 'sent') this.#closeDelivery(deliveryId)
  }

  /** Whether a message that carries the task may have to be sent again after a crash. */
  isCarried(entry: TaskEntry): boolean {
    return this.#carried.has(entry)
  }

  // Writing

  /** Whether a change of a task is not stored yet. */
  isPending({ record }: TaskEntry): boolean {
    return this.#sync.isPending('tasks', record.id)
  }

  /** Whether everything is stored; if not, it is being written, or will be at the end of this tick. */
  isSettled(): boolean {
    return this.#writer.isSettled()
  }

  /** Waits until what has changed by now is stored. */
  after(wait: StoreWait): void {
    this.#writer.after(wait)
  }

  /** Calls `run` when it was tried to store what has changed by now. */
  afterWrite(run: () => void): void {
    this.#writer.after({ onStored: run, onRefused: run })
  }

  /** Resolves when what has changed by now is stored. Rejects with StoreError when that cannot be done now. */
  stored(): Promise<void> {
    return this.#writer.stored()
  }

  /** Writes what is pending at the end of this tick. */
  flush(): void {
    this.#writer.flush()
  }

  /** Ends the possession of the store without a write. */
  abandon(): void {
    void this.#close()
  }

  /** Ends the possession of the store, when what can be written is, also to the history. The rest is lost. */
  async close(): Promise<void> {
    await this.past.flush()
    await this.#writer.close()
    await this.#close()
  }

  #closeDelivery(deliveryId: string): void {
    const delivery = this.#deliveries.get(deliveryId)
    if (delivery === undefined) return
    this.#deliveries.delete(deliveryId)
    this.#sync.remove('deliveries', deliveryId)
    for (const entry of delivery.entries) this.#carry(entry, -1)
    if (delivery.state === 'accepted') {
      this.#options.onConfirmed([...delivery.entries].filter((entry) => !this.isCarried(entry)))
    }
  }

  #takeOut({ entries }: OpenDelivery, entry: TaskEntry): void {
    entries.delete(entry)
    this.#carry(entry, -1)
  }

  #carry(entry: TaskEntry, by: 1 | -1): void {
    const count = (this.#carried.get(entry) ?? 0) + by
    if (count > 0) this.#carried.set(entry, count)
    else this.#carried.delete(entry)
  }

  #storageOf(entry: TaskEntry): TaskStorage {
    return this.#storage.get(entry) ?? { attempt: 1, deadlineAt: undefined, run: {} }
  }

  #rowOf(entry: TaskEntry, isReduced: boolean): StoredTask {
    const { record } = entry
    const { id, owner, status, delivery, seq, launchedAt, completedAt } = record
    const { attempt, deadlineAt, run } = this.#storageOf(entry)
    return {
      id,
      owner,
      status,
      delivery,
      attempt,
      seq,
      launchedAt,
      ...defined({ completedAt, deadlineAt }),
      record: {
        ...(isReduced ? reducedRecord(record) : storedRecord(record)),
        ...(delivery === 'delivered' && entry.lease && { [DELIVERED_BY]: entry.lease.id }),
      },
      ...(hasEnded(status)
        ? programIn(run)
        : { run: { ...run, ...this.#questionsOf(entry), ...(isReduced && { params: null }) } }),
    }
  }

  #questionsOf(entry: TaskEntry): StoredJson {
    return entry.record.questions === undefined ? {} : defined({ questions: this.#options.standingsOf?.(entry) })
  }
}

const isEmpty = ({ entries, questions }: OpenDelivery): boolean => entries.size + questions.size === 0

function deliveryRow({ id, owner, state, at, entries, questions }: OpenDelivery): StoredDelivery {
  const taskIds = Array.from(entries, ({ record }) => record.id)
  return { id, owner, state, at, taskIds, ...(questions.size > 0 && { questions: Array.from(questions, refOf) }) }
}
