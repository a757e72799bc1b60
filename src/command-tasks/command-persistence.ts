/**
 * Stores the state of one task manager (promise K12): its tasks, and the remote workers that may reconnect.
 *
 * All changes of a tick are one write. Events, the start of commands and answers to submissions wait for this write. A task and the outcome of each
 * of its commands are separate rows, so that the end of a command does not rewrite the whole task.
 */
import type { Clock } from '../system/clock.js'
import { jsonBytes } from '../data/json-size.js'
import { PastTasks } from '../store/history/past-tasks.js'
import { StoreSync } from '../store/store-sync.js'
import { withinLimit, type ClosedStore } from '../store/close-limit.js'
import { useStore, type ContentsOf } from '../store/shared-opening.js'
import type { StoreError } from '../store/store-errors.js'
import type { Store, StoredCommandTask, StoredFeatureState, StoredInstance } from '../store/store.js'
import { StoreWriter, type StoreWait, type StoreWriterOptions } from '../store/store-writer.js'
import { CommandTask } from './command-task.js'
import { pastCommandTask } from './past-command-task.js'
import {
  FORGOTTEN,
  forgottenRow,
  commandRow,
  commandRowId,
  restoreTasks,
  taskRow,
  type RestoredTask,
} from './stored-tasks.js'

export interface CommandPersistenceOptions {
  readonly store: Store
  readonly clock: Clock
  readonly report: (error: unknown) => void
  /** Holds back the events of a change until the change is stored. */
  readonly outbox: StoreWriterOptions['outbox']
}

export class CommandPersistence {
  /** Writes deleted tasks to the history of the store. */
  readonly past: PastTasks
  /** The instances that an earlier process paused, and when, in ms since the epoch. */
  readonly paused: ReadonlyMap<string, number>
  #workers: readonly StoredInstance[]
  readonly #writer: StoreWriter
  readonly #close: () => void | Promise<void>
  readonly #lost: AbortSignal | undefined
  readonly #closing: ClosedStore
  readonly #name: string
  readonly #rows = new StoreSync<StoredItems>({
    commandTasks: { rowOf: (item) => (item instanceof CommandTask ? taskRow(item) : item) },
    commands: { rowOf: ({ task, index }) => commandRow(task, index) },
    instances: { rowOf: (worker) => worker },
    featureStates: { rowOf: (state) => state },
  })
  /** Submitted tasks that could not be stored. */
  readonly #withdrawn = new WeakSet<CommandTask>()
  /** The size of each stored worker, in bytes of JSON. */
  readonly #workerBytes = new Map<string, number>()
  #contents: ContentsOf<'command tasks'> | undefined
  /** The number of the task that was submitted last, in this process or an earlier one. */
  #lastPlace = 0
  /** The id of the row that stores `#lastPlace` when its task was deleted. Without this row, the next process would use the same task ids again. */
  #placeholder: string | undefined

  /**
   * Opens the store.
   * @throws STORE_IN_USE when another process has the store
   * @throws StoreError when the store cannot be read
   */
  constructor({ store, clock, report, outbox }: CommandPersistenceOptions) {
    const { contents, close } = useStore(store, 'command tasks')
    this.#name = store.name ?? 'the store'
    this.#contents = contents
    this.#workers = contents.instances
    this.paused = new Map(contents.featureStates.flatMap(readPause))
    for (const { id, registration } of contents.instances) this.#workerBytes.set(id, jsonBytes(registration))
    this.#close = close
    this.#lost = store.lost
    this.#closing = { name: this.#name, clock, report }
    this.past = new PastTasks(store.history, report)
    this.#writer = new StoreWriter({ store, clock, report, outbox, pending: this.#rows })
  }

  /**
   * Returns the tasks of an earlier process, in the order of submission. A second call returns no tasks.
   * @throws StoreError for an invalid row
   */
  takeTasks(): readonly RestoredTask[] {
    const { commandTasks = [], commands = [] } = this.#contents ?? {}
    for (const { id, seq, status } of commandTasks) {
      this.#lastPlace = Math.max(this.#lastPlace, seq)
      if (status === FORGOTTEN) this.#placeholder = id
    }
    this.#contents = undefined
    return restoreTasks(
      commandTasks.filter(({ status }) => status !== FORGOTTEN),
      commands,
      this.#name,
    )
  }

  /** The number of the task that was submitted last, in this process or an earlier one. */
  get lastPlace(): number {
    return this.#lastPlace
  }

  /** Whether another process has taken over the store. */
  get isLost(): boolean {
    return this.#lost?.aborted === true
  }

  /** Whether the last write has failed. */
  get isFailing(): boolean {
    return this.#writer.isFailing
  }

  /** Stores a submitted task. Calls `onStored` when the task is stored. If the write fails, calls `onRefused`, which must `withdraw` the task. */
  submit(task: CommandTask, { onStored, onRefused }: Required<Pick<StoreWait, 'onStored' | 'onRefused'>>): void {
    this.note(task)
    this.#writer.after({
      row: { table: 'commandTasks', id: task.id },
      onStored: () => {
        if (this.#placeholder !== undefined) this.#rows.prune('commandTasks', this.#placeholder)
        this.#placeholder = undefined
        this.#lastPlace = Math.max(this.#lastPlace, task.place)
        onStored()
      },
      onRefused,
    })
  }

  /** Removes the rows of a submitted task that could not be stored. */
  withdraw(task: CommandTask): void {
    this.#withdrawn.add(task)
    this.#rows.prune('commandTasks', task.id)
    task.commands.forEach((_, index) => this.#rows.prune('commands', commandRowId(task.id, index)))
  }

  /** Resolves when all changes until now are stored. Rejects with StoreError when they cannot be stored now. */
  stored(): Promise<void> {
    return this.#writer.stored()
  }

  /** Stores a change of a task, or of its command with this index, at the end of the tick. */
  note(task: CommandTask, index?: number): void {
    if (this.#withdrawn.has(task)) return
    if (index === undefined) this.#rows.put('commandTasks', task.id, task)
    else this.#rows.put('commands', commandRowId(task.id, index), { task, index })
  }

  /** Moves an ended task to the history of the store. Its rows are deleted only after the history has the task, so that a crash does not lose it. */
  forget(task: CommandTask): void {
    if (this.#withdrawn.has(task)) return
    const { id } = task
    const row = forgottenRow(task)
    // The ids are computed here, because a callback that uses `task` would keep the whole task in memory until the history has it.
    const commands = task.commands.flatMap(({ completedAt }, index) =>
      completedAt === undefined ? [] : [commandRowId(id, index)],
    )
    this.past.add(pastCommandTask(task.record), () => this.#removeRows(row, commands))
  }

  /**
   * Deletes the rows of a task.
   * @param row a row without content; it replaces the task if that was submitted last
   */
  #removeRows(row: StoredCommandTask, commands: readonly string[]): void {
    for (const id of commands) this.#rows.prune('commands', id)
    if (row.seq === this.#lastPlace) {
      this.#placeholder = row.id
      this.#rows.put('commandTasks', row.id, row)
      this.#writer.flush()
    } else this.#rows.prune('commandTasks', row.id)
  }

  setPaused(instanceId: string, since: number | undefined): void {
    const id = `${PAUSES}/${instanceId}`
    if (since === undefined) this.#rows.remove('featureStates', id)
    else this.#rows.put('featureStates', id, { id, feature: PAUSES, data: { since } })
    this.#writer.flush()
  }

  /** Returns the workers that an earlier process registered. A second call returns no workers. */
  takeWorkers(): readonly StoredInstance[] {
    const workers = this.#workers
    this.#workers = []
    return workers
  }

  /**
   * Stores the registration of a worker. If all registrations together would exceed 16 MiB, the list of tools is left out. The worker can send the
   * list again when it connects.
   * @returns true; false, without a change, when 10,000 workers are stored already
   * @throws StoreError when the registration cannot be stored now
   */
  async addWorker(row: StoredInstance): Promise<boolean> {
    if (this.#workerBytes.size >= MAX_WORKERS) return false
    const held = [...this.#workerBytes.values()].reduce((sum, bytes) => sum + bytes, 0)
    const bytes = jsonBytes(row.registration, MAX_WORKER_BYTES)
    const isTooMuch = held + bytes > MAX_WORKER_BYTES
    const { tools: _tools, ...withoutTools } = row.registration
    this.#rows.put('instances', row.id, isTooMuch ? { ...row, registration: withoutTools } : row)
    this.#workerBytes.set(row.id, isTooMuch ? 0 : bytes)
    await new Promise<void>((onStored, reject) => {
      const onRefused = (error: StoreError): void => {
        this.#rows.prune('instances', row.id)
        this.#workerBytes.delete(row.id)
        reject(error)
      }
      this.#writer.after({ row: { table: 'instances', id: row.id }, onStored, onRefused })
    })
    return true
  }

  /** Deletes the stored registration of an instance that has ended. Does nothing if the instance was not a remote worker. */
  removeWorker(id: string): void {
    if (!this.#workerBytes.delete(id)) return
    this.#rows.remove('instances', id)
    this.#writer.flush()
  }

  /** Whether everything is stored. If not, a write is under way, or follows at the end of this tick. */
  isSettled(): boolean {
    return this.#writer.isSettled()
  }

  /** Calls `run` when the changes until now are stored, or could not be stored. */
  afterWrite(run: (isStored: boolean) => void): void {
    this.#writer.after({ onStored: () => run(true), onRefused: () => run(false) })
  }

  /** Makes a last attempt to write all changes, also to the history, and then closes the store. */
  async close(): Promise<void> {
    const lastWrite = async (): Promise<void> => {
      await this.past.flush()
      await this.#writer.close()
    }
    await withinLimit(lastWrite, 'its last write', this.#closing)
    await withinLimit(this.#close, 'its end', this.#closing)
  }

  /** Closes the store without a write. */
  abandon(): void {
    void this.#close()
  }
}

/** The objects from which the rows of each table are made. */
interface StoredItems {
  readonly commandTasks: CommandTask | StoredCommandTask
  readonly commands: { readonly task: CommandTask; readonly index: number }
  readonly instances: StoredInstance
  readonly featureStates: StoredFeatureState
}

const PAUSES = 'paused-instances'

/** Reads the row of a paused instance. Returns an empty list for a row of another feature. */
function readPause({ id, feature, data }: StoredFeatureState): [string, number][] {
  const { since } = Object(data) as { readonly since?: unknown }
  return feature === PAUSES && typeof since === 'number' ? [[id.slice(PAUSES.length + 1), since]] : []
}

/** The maximum number of stored workers, and the maximum size of all their registrations in bytes of JSON (16 MiB). */
const MAX_WORKERS = 10_000
const MAX_WORKER_BYTES = 16 * 1024 * 1024
