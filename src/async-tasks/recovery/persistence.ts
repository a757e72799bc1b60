/**
 * Keeps the store in step with the registry of a manager.
 *
 * The changes of one tick are written together, before they are published (promise K2) and before a run starts (promise K1). Leases and cancellations
 * are written at once (promises K3, K6). A failed write is repeated until it succeeds. Until then the changes in it are not published (promise K10).
 */
import type { RegistryNotification } from '../../../machines/change-feed.js'
import type { DeliveryObserver } from '../../../machines/ledger-options.js'
import { refOf } from '../../../machines/owed-questions.js'
import type { OwedQuestion, QuestionStanding, TaskEntry } from '../../../machines/task-entry.js'
import { hasEnded, holdsSlot, startsOrEndsRun } from '../../../machines/task-status.js'
import type { OnError } from '../../isolation/error-report.js'
import type { Clock } from '../../system/clock.js'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import type { StartedProgram } from '../../engine/reap.js'
import { isPossibleRepeat } from '../../features/delivery/notifications.js'
import { useStore, type ContentsOf } from '../../store/shared-opening.js'
import { folderName, type RunName } from '../../features/output/run-files.js'
import { reducedRecord, storedRecord } from './stored-records.js'
import { nextRun, writeRun, type FoundRow, type StoredRun } from './stored-run.js'
import { withinLimit, type ClosedStore } from '../../store/close-limit.js'
import { whenLost } from '../../store/lost-store.js'
import type {
  DeliveryAcceptance,
  Store,
  StoredDelivery,
  StoredFeatureState,
  StoredJson,
  StoredTask,
  StoredTurn,
  TurnLog,
} from '../../store/store.js'
import { PastTasks } from '../../store/history/past-tasks.js'
import { StoreSync } from '../../store/store-sync.js'
import { StoreWriter, type StoreWait, type StoreWriterOptions } from '../../store/store-writer.js'

/** The field of a stored record with the id of the message that delivered its result. */
export const DELIVERED_BY = 'deliveredBy'

/** The field of a stored record with the id of the message that has to be repeated as it was (`TaskEntry.repeatOf`). */
export const REPEAT_OF = 'repeatOf'

/**
 * When an accepted message counts as confirmed although its owner accepts no further message: when there are more of them, when their results have
 * more text, or this long after it was sent. Without that, a released owner would keep its results in the store forever.
 */
const MAX_UNCONFIRMED = { messages: 20_000, bytes: 64 * 1024 * 1024, ms: 86_400_000 } as const

const NOTHING = { tasks: [], deliveries: [], featureStates: [] } as const

export interface PersistenceOptions {
  readonly store: Store
  readonly clock: Clock
  readonly report: OnError
  /** Holds the notifications of a change until the change is stored. */
  readonly outbox: StoreWriterOptions['outbox']
  /** Returns the approximate size of an ended task's texts, in bytes. */
  readonly bytesOf?: (entry: TaskEntry) => number
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
  readonly run: StoredRun
}

interface OpenDelivery {
  readonly id: string
  readonly owner: string
  readonly at: number
  state: StoredDelivery['state']
  readonly entries: Set<TaskEntry>
  readonly questions: Set<OwedQuestion>
  /** The size of the results when the message was accepted, in bytes. */
  bytes: number
}

export class Persistence implements DeliveryObserver {
  /** The history of the store, which receives pruned tasks. */
  readonly past: PastTasks
  readonly #options: PersistenceOptions
  readonly #storage = new WeakMap<TaskEntry, TaskStorage>()
  readonly #sync = new StoreSync<{
    tasks: TaskEntry
    deliveries: OpenDelivery
    featureStates: StoredFeatureState
    turns: StoredTurn
  }>({
    tasks: { rowOf: (entry, isReduced) => this.#rowOf(entry, isReduced), isReducible: true },
    deliveries: { rowOf: deliveryRow },
    featureStates: { rowOf: (state) => state },
    turns: { rowOf: (turn) => turn },
  })
  /** Tasks that were never started and are not stored, because their launch was refused. */
  readonly #withdrawn = new WeakSet<TaskEntry>()
  readonly #deliveries = new Map<string, OpenDelivery>()
  /** The accepted messages that are not confirmed, in the order in which they were accepted. */
  readonly #accepted = new Set<OpenDelivery>()
  /** The same messages by owner. */
  readonly #acceptedOf = new Map<string, Set<OpenDelivery>>()
  /** The size of the results in these messages, in bytes. */
  #acceptedBytes = 0
  /** For each task, the unconfirmed messages that contain its result. */
  readonly #carried = new Map<TaskEntry, readonly OpenDelivery[]>()
  readonly #close: () => void | Promise<void>
  readonly #closing: ClosedStore
  readonly #writer: StoreWriter
  #keepsSent = false
  #contents: ContentsOf<'async tasks'> | undefined

  /**
   * Opens the store.
   * @throws STORE_IN_USE if another process uses the store
   * @throws StoreError if the store cannot be opened
   */
  constructor(options: PersistenceOptions) {
    this.#options = options
    const { store, clock, report, outbox } = options
    const opened = useStore(store, 'async tasks')
    const reportFailure = (error: unknown): void => report(error, { source: 'store' })
    this.#close = opened.close
    this.#closing = { name: this.name, clock, report: reportFailure }
    this.#contents = opened.contents
    this.past = new PastTasks(store.history, reportFailure)
    this.#writer = new StoreWriter({ store, clock, outbox, report: reportFailure, pending: this.#sync })
  }

  get name(): string {
    return this.#options.store.name ?? 'the store'
  }

  /** Whether the store is lost. Nothing can be stored any more, so no further change is published. */
  get isLost(): boolean {
    return this.#options.store.lost?.aborted === true
  }

  /** @throws StoreError if the store is lost */
  throwIfLost(): void {
    this.#options.store.lost?.throwIfAborted()
  }

  /** Calls `listener` when the store is lost. Returns a function that removes it. */
  onLost(listener: (reason: unknown) => void): () => void {
    return whenLost(this.#options.store, listener)
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
    this.setRun(entry, { program })
    try {
      await this.stored()
    } catch (error) {
      this.setRun(entry, { program: undefined })
      throw error
    }
  }

  runOf(entry: TaskEntry): StoredRun {
    return this.#storageOf(entry).run
  }

  setRun(entry: TaskEntry, fields: StoredRun): void {
    const storage = this.#storageOf(entry)
    this.#storage.set(entry, { ...storage, run: { ...storage.run, ...fields } })
    this.noteChange(entry)
  }

  /** Updates the stored deadline of a running task, because its time limit has changed. */
  setDeadline(entry: TaskEntry): void {
    const { startedAt, launchedAt, timeoutMs } = entry.record
    const deadlineAt = timeoutMs === undefined ? undefined : (startedAt ?? launchedAt) + timeoutMs
    this.#storage.set(entry, { ...this.#storageOf(entry), deadlineAt })
    this.noteChange(entry)
  }

  /** Stores that the run of a task was stopped with its process, and how often in a row that has happened to this attempt. */
  addSuspension(entry: TaskEntry): void {
    this.setRun(entry, { suspended: (this.runOf(entry).suspensions ?? 0) + 1 })
  }

  /**
   * Stores that another process has stopped the run of a task `stops` times in a row. The next run of the attempt has another name, because other
   * systems know that of the last run.
   */
  setStops(entry: TaskEntry, stops: number): void {
    this.setRun(entry, {
      suspensions: stops,
      ...(this.runOf(entry).key !== undefined && { key: globalThis.crypto.randomUUID() }),
    })
  }

  /** Stores the time until which the next run must wait, and the whole length of that wait. Both are removed when the run starts. */
  setDelay(entry: TaskEntry, delayMs: number): void {
    this.setRun(entry, { notBefore: this.#options.clock.now() + delayMs, delayMs })
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

  /** The kept turns; undefined if the store cannot keep any. */
  get turns(): TurnLog | undefined {
    return this.#options.store.turns
  }

  putTurn(turn: StoredTurn): void {
    this.#sync.put('turns', turn.id, turn)
  }

  removeTurn(id: string): void {
    this.#sync.remove('turns', id)
  }

  /** Adds a changed record to the next write. Also called for changes that are not published. */
  noteChange(entry: TaskEntry): void {
    if (!this.#withdrawn.has(entry)) this.#sync.put('tasks', entry.record.id, entry)
  }

  /** Updates the stored attempt and deadline when a queued task has started, or when a task waits for its next run. */
  #setAttempt(entry: TaskEntry): void {
    const { status, attempt = 1, startedAt = 0, timeoutMs } = entry.record
    const before = this.#storageOf(entry)
    const { notBefore, delayMs, suspensions, interruption } = before.run
    const isQueued = !holdsSlot(status)
    const deadlineAt = timeoutMs === undefined || isQueued ? undefined : startedAt + timeoutMs
    const wait = isQueued && notBefore !== undefined ? { notBefore, delayMs } : undefined
    const stops = omitUndefined({ interruption, suspensions: attempt === before.attempt ? suspensions : undefined })
    this.#storage.set(entry, {
      attempt,
      deadlineAt,
      run: { ...nextRun(before.run), ...wait, ...stops, place: entry.serial },
    })
  }

  /** Adds a task that was read from the store. It is written again only after a change. */
  restore(
    entry: TaskEntry,
    { attempt, deadlineAt, run }: Pick<FoundRow, 'attempt' | 'deadlineAt' | 'run'>,
    hasChanged: boolean,
  ): void {
    this.#storage.set(entry, { attempt, deadlineAt, run })
    if (hasChanged) this.noteChange(entry)
  }

  /** Adds a change of the registry to the next write. */
  note(notification: RegistryNotification): void {
    if (notification.type === 'limit' && notification.state === 'stopping') {
      // After a crash, a task whose deadline has passed is not run again.
      this.setRun(notification.entry, { isOverdue: true })
    }
    if (notification.type !== 'transition') return
    const { transition, entry } = notification
    if (transition.kind === 'history') return
    this.noteChange(entry)
    if (transition.kind === 'status' && startsOrEndsRun(transition.from, transition.to)) this.#setAttempt(entry)
  }

  /** Removes the row of a pruned task with the next write. */
  forget(id: string): void {
    this.#sync.prune('tasks', id)
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
      bytes: 0,
    }
    this.#deliveries.set(id, delivery)
    this.#sync.put('deliveries', id, delivery)
    if (question !== undefined) {
      delivery.questions.add(question)
      return
    }
    if (!delivery.entries.has(entry)) this.#carried.set(entry, [...(this.#carried.get(entry) ?? []), delivery])
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
    for (const { id } of this.#acceptedOf.get(accepted.owner) ?? []) {
      if (!this.#sync.isPending('deliveries', id)) this.#closeDelivery(id)
    }
    accepted.state = 'accepted'
    this.#sync.put('deliveries', deliveryId, accepted)
    if (isEmpty(accepted)) this.#closeDelivery(deliveryId)
    else this.#noteAccepted(accepted)
    this.#confirmOldest()
  }

  #noteAccepted(delivery: OpenDelivery): void {
    const { owner, entries } = delivery
    const ofOwner = this.#acceptedOf.get(owner)
    if (ofOwner === undefined) this.#acceptedOf.set(owner, new Set([delivery]))
    else ofOwner.add(delivery)
    this.#accepted.add(delivery)
    for (const entry of entries) delivery.bytes += this.#options.bytesOf?.(entry) ?? 0
    this.#acceptedBytes += delivery.bytes
  }

  /** Confirms the oldest messages. An owner that was released accepts no further message, so its results would be kept forever. */
  #confirmOldest(): void {
    const earliest = this.#options.clock.now() - MAX_UNCONFIRMED.ms
    const { messages, bytes } = MAX_UNCONFIRMED
    for (const { id, at } of this.#accepted) {
      if (this.#accepted.size <= messages && this.#acceptedBytes <= bytes && at >= earliest) return
      this.#closeDelivery(id)
    }
  }

  /** Records that the host itself has delivered a result. So no message with that result has to be repeated because of it. */
  onMarked(entry: TaskEntry): void {
    for (const delivery of this.#carried.get(entry) ?? []) {
      this.#takeOut(delivery, entry)
      this.#sync.put('deliveries', delivery.id, delivery)
      if (isEmpty(delivery)) this.#closeDelivery(delivery.id)
    }
  }

  onParted(entry: TaskEntry): void {
    this.noteChange(entry)
  }

  /**
   * Accepts a message in a transaction of the host (`DeliveryAcceptance.accept`).
   * @throws INVALID_INPUT also when the store is in no database
   * @throws AgentTasksError `LEASE_ENDED` also when the message was refused before
   */
  async acceptIn(client: Parameters<DeliveryAcceptance['accept']>[0], deliveryId: string): Promise<void> {
    const { acceptance } = this.#options.store
    this.throwIfLost()
    if (acceptance === undefined) throw new InvalidInputError('store', this.name, 'a store in PostgreSQL, for acceptIn')
    const delivery = this.#deliveries.get(deliveryId)
    if (delivery?.state !== 'sent') {
      throw new AgentTasksError('LEASE_ENDED', `The delivery ${deliveryId} is not open any more.`)
    }
    await acceptance.accept(client, { ...deliveryRow(delivery), state: 'accepted', isCommitted: true })
  }

  /** Whether a transaction with `acceptIn` is committed. Rejects with StoreError when the store is lost or closed. */
  async isCommitted(deliveryId: string): Promise<boolean> {
    return (await this.#options.store.acceptance?.isCommitted(deliveryId)) === true
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
    const accepted = owner === undefined ? this.#accepted : this.#acceptedOf.get(owner)
    for (const { id } of accepted ?? []) this.#closeDelivery(id)
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

  /** Writes what can be written, including the history, and closes the store. Changes that cannot be written are lost. A store that does not answer is left. */
  async close(): Promise<void> {
    const lastWrite = async (): Promise<void> => {
      await this.past.flush()
      await this.#writer.close()
    }
    await withinLimit(lastWrite, 'its last write', this.#closing)
    await withinLimit(this.#close, 'its end', this.#closing)
  }

  #closeDelivery(deliveryId: string): void {
    const delivery = this.#deliveries.get(deliveryId)
    if (delivery === undefined) return
    this.#deliveries.delete(deliveryId)
    this.#sync.remove('deliveries', deliveryId)
    for (const entry of delivery.entries) this.#uncarry(entry, delivery)
    if (this.#accepted.delete(delivery)) this.#forgetAccepted(delivery)
    if (delivery.state === 'accepted') {
      this.#options.onConfirmed([...delivery.entries].filter((entry) => !this.isCarried(entry)))
    }
  }

  #forgetAccepted(delivery: OpenDelivery): void {
    const { owner, bytes } = delivery
    const ofOwner = this.#acceptedOf.get(owner)
    ofOwner?.delete(delivery)
    if (ofOwner?.size === 0) this.#acceptedOf.delete(owner)
    this.#acceptedBytes -= bytes
  }

  #takeOut(delivery: OpenDelivery, entry: TaskEntry): void {
    delivery.entries.delete(entry)
    this.#uncarry(entry, delivery)
  }

  #uncarry(entry: TaskEntry, delivery: OpenDelivery): void {
    const left = (this.#carried.get(entry) ?? []).filter((each) => each !== delivery)
    if (left.length > 0) this.#carried.set(entry, left)
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
      ...omitUndefined({ completedAt, deadlineAt }),
      record: {
        ...(isReduced ? reducedRecord(record) : storedRecord(record)),
        ...(delivery === 'delivered' && omitUndefined({ [DELIVERED_BY]: entry.deliveredBy })),
        ...(entry.repeatOf !== undefined && { [REPEAT_OF]: entry.repeatOf }),
      },
      ...writeRun(record.questions === undefined ? run : this.#withQuestions(run, entry), hasEnded(status), isReduced),
    }
  }

  #withQuestions(run: StoredRun, entry: TaskEntry): StoredRun {
    return { ...run, ...omitUndefined({ questions: this.#options.standingsOf?.(entry) }) }
  }
}

const isEmpty = ({ entries, questions }: OpenDelivery): boolean => entries.size + questions.size === 0

function deliveryRow({ id, owner, state, at, entries, questions }: OpenDelivery): StoredDelivery {
  const taskIds = Array.from(entries, ({ record }) => record.id)
  return { id, owner, state, at, taskIds, ...(questions.size > 0 && { questions: Array.from(questions, refOf) }) }
}
