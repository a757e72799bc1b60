/** Suspension: the process leaves its tasks to the next one (promise K13). What their runs still return is kept for the next process. */
import type { OutputObject } from '../records.js'
import type { RegistryEvent } from '../registry-events.js'
import { isTerminal, type TaskEntry } from '../task-entry.js'
import type { Handlers, RegistryCore, RegistryPart } from './part.js'

export class SuspensionPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #onNoted: ((entry: TaskEntry) => void) | undefined
  readonly #suspended = new Set<TaskEntry>()
  #isClosed = false

  constructor(core: RegistryCore, onNoted: ((entry: TaskEntry) => void) | undefined) {
    this.#core = core
    this.#onNoted = onNoted
  }

  readonly on: Handlers<'registry.close' | 'registry.suspend' | 'run.returned'> = {
    'registry.suspend': ({ running }) => {
      for (const entry of running) this.#suspended.add(entry)
    },
    'run.returned': ({ entry, output }) => {
      this.#keep(entry, output)
    },
    'registry.close': () => {
      this.#isClosed = true
    },
  }

  /** Whether a disposed registry still keeps what suspended runs return. */
  get isOpen(): boolean {
    return this.#suspended.size > 0 && !this.#isClosed
  }

  /** Whether the run of a task was asked to stop, and its task is left to the next process. */
  has(entry: TaskEntry): boolean {
    return this.#suspended.has(entry)
  }

  /** Whether the registry handles an event before its disposal, or after it. */
  accepts(event: RegistryEvent, isDisposed: boolean): boolean {
    if (event.type === 'run.returned' || event.type === 'registry.close') return isDisposed
    return !isDisposed || (event.type === 'task.spend' && this.#isOpen(event.entry))
  }

  #isOpen(entry: TaskEntry): boolean {
    return this.#suspended.has(entry) && !isTerminal(entry.record)
  }

  /** An empty output says only that the run has stopped. */
  #keep(entry: TaskEntry, output: OutputObject): void {
    if (!this.#isOpen(entry) || Object.keys(output).length === 0) return
    this.#core.stop(entry, true)
    this.#core.ledger.complete(entry, output)
    this.#onNoted?.(entry)
  }
}
