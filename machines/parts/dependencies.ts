/** Dependencies: a task that waits for other tasks is held in the queue until they have ended. */
import type { WaitEvent } from '../registry-events.js'
import type { TaskEntry } from '../task-entry.js'
import { waitingRecord } from '../task-record.js'
import type { HoldReason } from '../task-queue.js'
import type { Handlers, Held, RegistryCore, RegistryPart } from './part.js'
import { isWaiting } from '../task-status.js'

export interface DependenciesOptions {
  /** Called when a task ends. Its run may still be going on. `apply` changes tasks that wait for it, in the same transition. */
  readonly onEnded: ((entry: TaskEntry, apply: (event: WaitEvent) => void) => void) | undefined
  /** Called when the record of a task has changed. */
  readonly onNoted: ((entry: TaskEntry) => void) | undefined
}

export class DependenciesPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #options: DependenciesOptions

  constructor(core: RegistryCore, options: DependenciesOptions) {
    this.#core = core
    this.#options = options
  }

  readonly on: Handlers<'task.waits' | 'task.unmet'> = {
    'task.waits': (event) => {
      this.#apply(event)
    },
    'task.unmet': (event) => {
      this.#apply(event)
    },
  }

  hold({ isHeld = false }: Held): HoldReason | undefined {
    return isHeld ? 'dependencies' : undefined
  }

  ended(entry: TaskEntry): void {
    this.#options.onEnded?.(entry, (event) => this.#apply(event))
  }

  #apply(event: WaitEvent): void {
    const { entry } = event
    if (!isWaiting(entry.record.status)) return
    if (event.type === 'task.unmet') {
      this.#core.effects.push({ type: 'unmet', entry, failure: event.failure })
      return
    }
    entry.record = waitingRecord(entry.record, event.ids)
    this.#options.onNoted?.(entry)
    if (event.ids.length === 0) this.#core.queue.release(entry, 'dependencies')
  }
}
