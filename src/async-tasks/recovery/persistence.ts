/**
 * Keeps the store in step with the registry of a manager.
 *
 * The changes of one tick are written together, before they are published (promise K2) and before a run starts (promise K1). Leases and cancellations
 * are written at once (promises K3, K6). A failed write is repeated until it succeeds. Until then the changes in it are not published (promise K10).
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
import { endedRun, reducedRecord, storedRecord } from './stored-records.js'
import type { Store, StoredDelivery, StoredFeatureState, StoredJson, StoredTask } from '../../store/store.js'
import { PastTasks } from '../../kernel/past-tasks.js'
import { StoreSync } from '../../kernel/store-sync.js'
import { StoreWriter, type StoreWait, type StoreWriterOptions } from '../../store/store-writer.js'

/** The field of a stored record with the id of the message that delivered its result. */
export const DELIVERED_BY = 'deliveredBy'

/**
 * When an accepted message counts as confirmed although its owner accepts no further message: after this many later messages, or this long after it
 * was sent. Without that, a released owner would keep its results in the store forever.
 */
const MAX_UNCONFIRMED = { messages: 1000, ms: 86_400_000 } as const

const NOTHING = { tasks: [], deliveries: [], featureStates: [] } as const

export interface PersistenceOptions {
  readonly store: Store
  readonly clock: Clock
  readonly report: OnError
  /** Holds the notifications of a change until the change is stored. */
  readonly outbox: StoreWriterOptions['outbox']
  /** Called when it is certain that a message arrived. The records of its results may then be pruned. */
  readonly onConfirmed: (entries: readonly TaskEntry[]) => void
  /** Returns the state of a task's open questions for the store. Returns undefined if the questions end with this process. */
  readonly standingsOf?: (entry: TaskEntry) => Readonly<Record<string, QuestionStanding>> | undefined
}

/** What is stored of a task besides its record. */
export interface TaskStorage {
  readonly attempt: number
  /** When the deadline of the task passes, in ms since the epoch. */
  readonly deadlineAt: number | undefined
  /** What another process needs to run the task again or to find its program. */
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
  /** The history of the store, which receives pruned tasks. */
  readonly past: PastTasks
  readonly #options: PersistenceOptions
  readonly #storage = new WeakMap<TaskEntry, TaskStorage>()
  readonly #sync = new StoreSync<{ tasks: TaskEntry; deliveries: OpenDelivery; featureStates: StoredFeatureState }>({
    tasks: { rowOf: (entry, isReduced) => this.#rowOf(entry, isReduced), isReducible: true },
    deliveries: { rowOf: deliveryRow },
    featureStates: { rowOf: (state) => state },
  })
  /** Tasks that were never started and are not stored, because their launch was refused. */
  readonly #withdrawn = new WeakSet<TaskEntry>()
  readonly #deliveries = new Map<string, OpenDelivery>()
  /** For each task, how many unconfirmed messages contain its result. */
  readonly #carried = new Map<TaskEntry, number>()
  readonly #close: () => void | Promise<void>
  readonly #writer: StoreWriter
  #keepsSent = false
  #contents: ContentsOf<'async tasks'> | undefined

  /**
   * Opens the store.
   * @throws StoreInUseError if another process uses the store
   * @throws StoreError if the store cannot be opened
   */
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

  /** The name of the store for error messages. */
  get name(): string {
    return this.#options.store.name ?? 'the store'
  }

  /** Whether a task is not stored because its launch was refused. */
  isWithdrawn(entry: TaskEntry): boolean {
    return this.#withdrawn.has(entry)
  }

  /** Returns what the store contained when it was opened. Only the first call returns it, so that the memory can be freed. */
  takeContents(): ContentsOf<'async tasks'> {
    const contents = this.#contents ?? NOTHING
    this.#contents = undefined
    return contents
  }

  /** The folder for the files of a run; undefined if the store has no folder. */
  folderOf(run: RunName): string | undefined {
    const { directory } = this.#options.store
    return directory === undefined ? undefined : `${directory}/${folderName(run)}`
  }

  /** Returns the folders of all runs that have files. */
  folders(): ReadonlySet<string> {
    const { directory } = this.#options.store
    if (directory === undefined) return new Set()
    try {
      const names = nodeBuiltin('node:fs').readdirSync(directory)
      return new Set(names.map((name) => `${directory}/${name}`))
    } catch {
      // The directory does not exist yet, because no run has had files.
      return new Set()
    }
  }

  launch(entry: TaskEntry, storage: TaskStorage): void {
    this.#storage.set(entry, storage)
    this.noteChange(entry)
  }

  /** Records that the launch of a task could not be stored. */
  withdraw(entry: TaskEntry): void {
    this.#withdrawn.add(entry)
    this.#sync.prune('tasks', entry.record.id)
  }

  /** Removes the stored launch of a task that was refused later. */
  withdrawStored(entry: TaskEntry): void {
    this.#withdrawn.add(entry)
    this.#sync.remove('tasks', entry.record.id)
  }

  /** Stores which program a task runs. Rejects with StoreError if it cannot be stored now. */
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

  /** Returns the program of the current run of a task that is recorded in the store. */
  programOf(entry: TaskEntry): StartedProgram | undefined {
    return toStartedProgram(this.#storageOf(entry).run['program'])
  }

  /** Returns a name for a task that is unique outside of its store as well. Returns undefined if no other system refers to the task. */
  keyOf(entry: TaskEntry): string | undefined {
    const { key } = this.#storageOf(entry).run
    return typeof key === 'string' ? key : undefined
  }

  /** Returns the params of a task's launch; null if they were too large to be stored; undefined if there are none. */
  paramsOf(entry: TaskEntry): StoredJson | null | undefined {
    const { params } = this.#storageOf(entry).run
    return params as StoredJson | null | undefined
  }

  setRun(entry: TaskEntry, fields: StoredJson): void {
    const storage = this.#storageOf(entry)
    this.#storage.set(entry, { ...storage, run: { ...storage.run, ...fields } })
    this.noteChange(entry)
  }

  /** Stores the time until which the next run must wait, and the whole length of that wait. Both are removed when the run starts. */
  setDelay(entry: TaskEntry, delayMs: number): void {
    const storage = this.#storageOf(entry)
    const notBefore = this.#options.clock.now() + delayMs
    this.#storage.set(entry, { ...storage, run: { ...storage.run, notBefore, delayMs } })
  }

  /**
   * Stores the data of a feature, in one write with all changes of the same tick.
   * @param id unique within the feature
   */
  keepState(feature: string, id: string, data: StoredJson): void {
    const row = { id: `${feature}/${id}`, feature, data }
    this.#sync.put('featureStates', row.id, row)
  }

  dropState(feature: string, id: string): void {
    this.#sync.remove('featureStates', `${feature}/${id}`)
  }

  /** Adds a changed record to the next write. Also called for changes that are not published. */
  noteChange(entry: TaskEntry): void {
    if (!this.#withdrawn.has(entry)) this.#sync.put('tasks', entry.record.id, entry)
  }

  /** Updates the stored attempt and deadline when a queued task has started, or when a task waits for its next run. */
  #setAttempt(entry: TaskEntry): void {
    const { status, attempt = 1, startedAt = 0, timeoutMs } = entry.record
    const { isOverdue: _, program: _program, notBefore, delayMs, isWaiting: _wait, ...run } = this.#storageOf(entry).run
    const isQueued = !holdsSlot(status)
    const deadlineAt = timeoutMs === undefined || isQueued ? undefined : startedAt + timeoutMs
    const wait = isQueued && notBefore !== undefined ? { notBefore, delayMs } : undefined
    this.#storage.set(entry, { attempt, deadlineAt, run: { ...run, ...wait, place: entry.serial } })
  }

  /** Adds a task that was read from the store. It is written again only after a change. */
  restore(
    entry: TaskEntry,
    { attempt, deadlineAt, run = {} }: Pick<StoredTask, 'attempt' | 'deadlineAt' | 'run'>,
    hasChanged: boolean,
  ): void {
    this.#storage.set(entry, { attempt, deadlineAt, run })
    if (hasChanged) this.noteChange(entry)
  }

  /** Adds a change of the registry to the next write. */
  note(notification: RegistryNotification): void {
    if (notification.type === 'limit' && notification.state === 'stopping') this.#setOverdue(notification.entry)
    if (notification.type !== 'transition') return
    const { transition, entry } = notification
    if (transition.kind === 'history') return
    this.noteChange(entry)
    if (transition.kind === 'status' && isOtherRun(transition.from, transition.to)) this.#setAttempt(entry)
  }

  /** Removes the row of a pruned task with the next write. */
  forget(id: string): void {
    this.#sync.prune('tasks', id)
  }

  /** Records that the deadline of a task has passed, so that the task is not run again after a crash. */
  #setOverdue(entry: TaskEntry): void {
    const storage = this.#storageOf(entry)
    this.#storage.set(entry, { ...storage, run: { ...storage.run, isOverdue: true } })
    this.noteChange(entry)
  }

  /**
   * Records that a message will contain this result or question. The record is written before the message is sent. Of the questions, only those of
   * durable tasks are stored.
   */
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
   * Records that a message was accepted. That also confirms the earlier messages to the same owner (promise K5). Messages that are not stored yet are
   * not confirmed, because the host may have accepted them in the same turn. Results that are already repeats are confirmed at once. Otherwise a host
   * without `wasDelivered` would receive them again after each crash.
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
      // Moves the message to the end, because `#confirmOldest` needs the order in which messages were accepted.
      this.#deliveries.delete(deliveryId)
      this.#deliveries.set(deliveryId, accepted)
    }
    this.#confirmOldest()
  }

  /** Confirms the oldest messages. An owner that was released accepts no further message, so its results would be kept forever. */
  #confirmOldest(): void {
    const earliest = this.#options.clock.now() - MAX_UNCONFIRMED.ms
    for (const [id, { state, at }] of this.#deliveries) {
      if (state !== 'accepted') continue
      if (this.#deliveries.size <= MAX_UNCONFIRMED.messages && at >= earliest) return
      this.#closeDelivery(id)
    }
  }

  /** Records that the host itself has delivered a result. So no message with that result has to be repeated because of it. */
  onMarked(entry: TaskEntry): void {
    if (!this.isCarried(entry)) return
    for (const [id, delivery] of this.#deliveries) {
      if (!delivery.entries.has(entry)) continue
      this.#takeOut(delivery, entry)
      this.#sync.put('deliveries', id, delivery)
      if (isEmpty(delivery)) this.#closeDelivery(id)
    }
  }

  /** Confirms a message that the host has found in its transcript. Returns false if the message is unknown or was confirmed before. */
  confirmDelivery(deliveryId: string): boolean {
    if (this.#deliveries.get(deliveryId)?.state !== 'accepted') return false
    this.#closeDelivery(deliveryId)
    return true
  }

  /** Removes a message of an earlier process, because it is now known whether the message arrived. */
  forgetDelivery(deliveryId: string): void {
    this.#closeDelivery(deliveryId)
    this.#sync.remove('deliveries', deliveryId)
  }

  /** Confirms the accepted messages of an owner, or of all owners. Called when no later message will confirm them. */
  confirmOwner(owner?: string): void {
    for (const [id, delivery] of this.#deliveries) {
      const isOfOwner = owner === undefined || delivery.owner === owner
      if (isOfOwner && delivery.state === 'accepted') this.#closeDelivery(id)
    }
  }

  /** Keeps messages whose outcome is unknown when the host shuts down. They may have been accepted, so the next process asks the host about them. */
  keepSent(): void {
    this.#keepsSent = true
  }

  /** Records that a message was not accepted. Its results are owed again. */
  onReleased(deliveryId: string): void {
    if (this.#keepsSent) return
    if (this.#deliveries.get(deliveryId)?.state === 'sent') this.#closeDelivery(deliveryId)
  }

  /** Whether a message with the result of this task may have to be repeated after a crash. */
  isCarried(entry: TaskEntry): boolean {
    return this.#carried.has(entry)
  }

  isPending({ record }: TaskEntry): boolean {
    return this.#sync.isPending('tasks', record.id)
  }

  /** Whether everything is stored. If not, a write is in progress, or begins at the end of this tick. */
  isSettled(): boolean {
    return this.#writer.isSettled()
  }

  /** Calls `wait.onStored` when all changes so far are stored. */
  after(wait: StoreWait): void {
    this.#writer.after(wait)
  }

  /** Calls `run` after the attempt to store all changes so far, even if it fails. */
  afterWrite(run: () => void): void {
    this.#writer.after({ onStored: run, onRefused: run })
  }

  /** Resolves when all changes so far are stored. Rejects with StoreError if they cannot be stored now. */
  stored(): Promise<void> {
    return this.#writer.stored()
  }

  /** Writes the pending changes at the end of this tick. */
  flush(): void {
    this.#writer.flush()
  }

  /** Closes the store without writing anything. */
  abandon(): void {
    void this.#close()
  }

  /** Writes what can be written, including the history, and closes the store. Changes that cannot be written are lost. */
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
        ? endedRun(run, isReduced)
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
