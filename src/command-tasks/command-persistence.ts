/**
 * Keeps a store in step with one task manager (K12): its tasks, and the remote workers that may connect again.
 *
 * What changes in a tick is one write, before anything of it is notified, a command of it starts, or a submission is answered. A task and the outcome
 * of each of its commands are rows of their own, so that the end of a command does not write the rest of its task again.
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
  /** What is notified of a change waits there until the change is stored. */
  readonly outbox: StoreWriterOptions['outbox']
}

export class CommandPersistence {
  /** Where tasks go that are not retained any longer. */
  readonly past: PastTasks
  /** Since when instances were paused in an earlier process, in ms since the epoch. */
  readonly paused: ReadonlyMap<string, number>
  #workers: readonly StoredInstance[]
  readonly #writer: StoreWriter
  readonly #close: () => void | Promise<void>
  /** What errors call the store. */
  readonly #name: string
  readonly #rows = new StoreSync<StoredItems>({
    commandTasks: { rowOf: (item) => (item instanceof CommandTask ? taskRow(item) : item) },
    commands: { rowOf: ({ task, index }) => commandRow(task, index) },
    instances: { rowOf: (worker) => worker },
    featureStates: { rowOf: (state) => state },
  })
  /** They could not be stored. */
  readonly #withdrawn = new WeakSet<CommandTask>()
  /** What the stored workers hold, in bytes of JSON. */
  readonly #workerBytes = new Map<string, number>()
  #contents: ContentsOf<'command tasks'> | undefined
  /** The last place in the order of submission that was given away. */
  #lastPlace = 0
  /** Stands for the last place while the task that had it is forgotten: no id may come again. */
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

  /** The tasks of an earlier process, in the order of submission; they are not kept here. @throws StoreError for a row that is none */
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

  /** The last place in the order of submission that was given away, in this process or before. */
  get lastPlace(): number {
    return this.#lastPlace
  }

  /** Whether a write has failed and has not succeeded since. */
  get isFailing(): boolean {
    return this.#writer.isFailing
  }

  /** A task was submitted. It is accepted when it is stored; otherwise nothing of it may be written. */
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

  /** A submission could not be stored. */
  withdraw(task: CommandTask): void {
    this.#withdrawn.add(task)
    this.#rows.prune('commandTasks', task.id)
    task.commands.forEach((_, index) => this.#rows.prune('commands', commandRowId(task.id, index)))
  }

  /** Resolves when what has changed by now is stored. Rejects with StoreError when that cannot be done now. */
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
   * A task is not retained any longer. Its end was delivered, so all of it is stored; its rows stay until the history has it, so that a crash loses
   * it in neither.
   */
  forget(task: CommandTask): void {
    if (this.#withdrawn.has(task)) return
    const { id } = task
    const row = forgottenRow(task)
    // What V8 keeps for the callback must not have the task.
    const commands = task.commands.flatMap(({ completedAt }, index) =>
      completedAt === undefined ? [] : [commandRowId(id, index)],
    )
    this.past.add(pastCommandTask(task.record), () => this.#removeRows(row, commands))
  }

  /** @param row stands for the task if it has the last place */
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

  /** The workers that were registered in an earlier process; they are not kept here. */
  takeWorkers(): readonly StoredInstance[] {
    const workers = this.#workers
    this.#workers = []
    return workers
  }

  /**
   * Stores the registration of a worker, before it is answered. Beyond the limit of bytes it is stored without its tools, which a worker may say
   * again in its `hello`.
   * @returns false, with nothing changed, when too many workers are stored
   * @throws StoreError when that cannot be done now; nothing is stored then
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

  /** An instance is gone. It is forgotten if it was a worker. */
  removeWorker(id: string): void {
    if (!this.#workerBytes.delete(id)) return
    this.#rows.remove('instances', id)
    this.#writer.flush()
  }

  /** Whether everything is stored; if not, it is being written, or will be at the end of this tick. */
  isSettled(): boolean {
    return this.#writer.isSettled()
  }

  /** Calls `run` when it was tried to store what has changed by now. */
  afterWrite(run: (isStored: boolean) => void): void {
    this.#writer.after({ onStored: () => run(true), onRefused: () => run(false) })
  }

  /** Ends the use of the store, when what can be written is, also to the history. The rest is lost. */
  async close(): Promise<void> {
    await this.past.flush()
    await this.#writer.close()
    await this.#close()
  }

  /** Ends the use of the store without a write. */
  abandon(): void {
    void this.#close()
  }
}

/** What the rows are made of; every text and result of a command task is limited in bytes of JSON. */
interface StoredItems {
  readonly commandTasks: CommandTask | StoredCommandTask
  readonly commands: { readonly task: CommandTask; readonly index: number }
  readonly instances: StoredInstance
  readonly featureStates: StoredFeatureState
}

const PAUSES = 'paused-instances'

/** The instance that a row pauses, and since when; nothing for another row. */
function readPause({ id, feature, data }: StoredFeatureState): [string, number][] {
  const { since } = Object(data) as { readonly since?: unknown }
  return feature === PAUSES && typeof since === 'number' ? [[id.slice(PAUSES.length + 1), since]] : []
}

/** The most workers that are stored, and what they may have said about themselves, in bytes of JSON (16 MiB). */
const MAX_WORKERS = 10_000
const MAX_WORKER_BYTES = 16 * 1024 * 1024
