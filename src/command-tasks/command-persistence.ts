/**
 * Keeps a store in step with one task manager (promise K12): its tasks, and the remote workers that may reconnect.
 *
 * The changes of a tick are one write, which precedes their events, the start of commands, and the answers to submissions. A task and the outcomes
 * of its commands are separate rows, so that the end of a command does not rewrite its whole task.
 */
import type { Clock } from '../clock.js'
import { jsonBytes } from '../json/json-size.js'
import { PastTasks } from '../kernel/past-tasks.js'
import { StoreSync } from '../kernel/store-sync.js'
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
  /** Holds events back until their change is stored. */
  readonly outbox: StoreWriterOptions['outbox']
}

export class CommandPersistence {
  /** Receives tasks that are no longer retained. */
  readonly past: PastTasks
  /** The instances that an earlier process paused, and since when, in ms since the epoch. */
  readonly paused: ReadonlyMap<string, number>
  #workers: readonly StoredInstance[]
  readonly #writer: StoreWriter
  readonly #close: () => void | Promise<void>
  /** The name of the store in errors. */
  readonly #name: string
  readonly #rows = new StoreSync<StoredItems>({
    commandTasks: { rowOf: (item) => (item instanceof CommandTask ? taskRow(item) : item) },
    commands: { rowOf: ({ task, index }) => commandRow(task, index) },
    instances: { rowOf: (worker) => worker },
    featureStates: { rowOf: (state) => state },
  })
  /** Tasks that could not be stored. */
  readonly #withdrawn = new WeakSet<CommandTask>()
  /** The size of each stored worker, in bytes of JSON. */
  readonly #workerBytes = new Map<string, number>()
  #contents: ContentsOf<'command tasks'> | undefined
  /** The last assigned place in the order of submission. */
  #lastPlace = 0
  /** The row that keeps the last place after its task was deleted, because ids must not repeat. */
  #placeholder: string | undefined

  /** Opens the store. @throws StoreInUseError, StoreError */
  constructor({ store, clock, report, outbox }: CommandPersistenceOptions) {
    const { contents, close } = useStore(store, 'command tasks')
    this.#name = store.name ?? 'the store'
    this.#contents = contents
    this.#workers = contents.instances
    this.paused = new Map(contents.featureStates.flatMap(readPause))
    for (const { id, registration } of contents.instances) this.#workerBytes.set(id, jsonBytes(registration))
    this.#close = close
    this.past = new PastTasks(store.history, report)
    this.#writer = new StoreWriter({ store, clock, report, outbox, pending: this.#rows })
  }

  /** The tasks of an earlier process, in the order of submission; they are released afterwards. @throws StoreError for an invalid row */
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

  /** The last assigned place in the order of submission, in this process or before. */
  get lastPlace(): number {
    return this.#lastPlace
  }

  /** Whether the last write has failed. */
  get isFailing(): boolean {
    return this.#writer.isFailing
  }

  /** Stores a submitted task. It is accepted when it is stored; otherwise no part of it may be written. */
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

  /** Removes a submission that could not be stored. */
  withdraw(task: CommandTask): void {
    this.#withdrawn.add(task)
    this.#rows.prune('commandTasks', task.id)
    task.commands.forEach((_, index) => this.#rows.prune('commands', commandRowId(task.id, index)))
  }

  /** Resolves when the changes so far are stored. Rejects with StoreError when they cannot be stored now. */
  stored(): Promise<void> {
    return this.#writer.stored()
  }

  /** A task has changed, or one of its commands has ended. */
  note(task: CommandTask, index?: number): void {
    if (this.#withdrawn.has(task)) return
    if (index === undefined) this.#rows.put('commandTasks', task.id, task)
    else this.#rows.put('commands', commandRowId(task.id, index), { task, index })
  }

  /**
   * Deletes a task that is no longer retained. Its end was delivered, so it is stored completely. Its rows stay until the history has it, so that a
   * crash does not lose it.
   */
  forget(task: CommandTask): void {
    if (this.#withdrawn.has(task)) return
    const { id } = task
    const row = forgottenRow(task)
    // V8 would keep the task alive for the callback.
    const commands = task.commands.flatMap(({ completedAt }, index) =>
      completedAt === undefined ? [] : [commandRowId(id, index)],
    )
    this.past.add(pastCommandTask(task.record), () => this.#removeRows(row, commands))
  }

  /** @param row replaces the task if it has the last place */
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

  /** The workers that an earlier process registered; they are released afterwards. */
  takeWorkers(): readonly StoredInstance[] {
    const workers = this.#workers
    this.#workers = []
    return workers
  }

  /**
   * Stores the registration of a worker before it is answered. Above the byte limit it is stored without its tools, which a worker can send
   * again in its `hello`.
   * @returns false, without a change, when too many workers are stored
   * @throws StoreError when it cannot be stored now
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

  /** Deletes the registration of an instance that is gone, if it was a worker. */
  removeWorker(id: string): void {
    if (!this.#workerBytes.delete(id)) return
    this.#rows.remove('instances', id)
    this.#writer.flush()
  }

  /** Whether everything is stored. Otherwise a write is under way or follows at the end of this tick. */
  isSettled(): boolean {
    return this.#writer.isSettled()
  }

  /** Calls `run` after the attempt to store the changes so far. */
  afterWrite(run: (isStored: boolean) => void): void {
    this.#writer.after({ onStored: () => run(true), onRefused: () => run(false) })
  }

  /** Writes what can be written, also to the history, and releases the store. Other changes are lost. */
  async close(): Promise<void> {
    await this.past.flush()
    await this.#writer.close()
    await this.#close()
  }

  /** Releases the store without a write. */
  abandon(): void {
    void this.#close()
  }
}

/** The sources of the rows. Every text and result of a command task is limited in bytes of JSON. */
interface StoredItems {
  readonly commandTasks: CommandTask | StoredCommandTask
  readonly commands: { readonly task: CommandTask; readonly index: number }
  readonly instances: StoredInstance
  readonly featureStates: StoredFeatureState
}

const PAUSES = 'paused-instances'

/** The instance that a row pauses, and since when; an empty list for another row. */
function readPause({ id, feature, data }: StoredFeatureState): [string, number][] {
  const { since } = Object(data) as { readonly since?: unknown }
  return feature === PAUSES && typeof since === 'number' ? [[id.slice(PAUSES.length + 1), since]] : []
}

/** The limits for stored workers: their number, and the size of their registrations in bytes of JSON (16 MiB). */
const MAX_WORKERS = 10_000
const MAX_WORKER_BYTES = 16 * 1024 * 1024
