/** Waits of durable runs: a run that only waits gives back its slots, and waits for them again before it goes on (promise F20). */
import type { TaskEntry } from '../task-entry.js'
import { holdsSlot } from '../task-status.js'
import type { EventOf, Handlers, RegistryCore, RegistryPart } from './part.js'

export class DurableWaitsPart implements RegistryPart {
  readonly #core: RegistryCore

  constructor(core: RegistryCore) {
    this.#core = core
  }

  readonly on: Handlers<'run.waits' | 'run.works'> = {
    'run.waits': (event) => {
      this.#wait(event)
    },
    'run.works': ({ entry }) => {
      this.#work(entry)
    },
  }

  #wait({ entry, ticket }: EventOf<'run.waits'>): void {
    // While a run is being stopped, its grace period must go on.
    if (!holdsSlot(entry.record.status) || entry.graceMs === undefined) return
    this.#core.waits(entry)
    if (ticket !== undefined && entry.record.isForeground !== true) this.#core.queue.yieldSlots(entry, ticket)
  }

  #work(entry: TaskEntry): void {
    const { queue } = this.#core
    if (!holdsSlot(entry.record.status)) queue.release(entry, 'wait')
    else if (!queue.requestSlots(entry)) this.#core.proceed(entry)
  }
}
