/** Tasks in the foreground: their callers wait for them. They count against a limit of their own, and may move to the background. */
import type { AdmissionRefusal, Detachment } from '../registry-events.js'
import { neededPool } from '../start-queue.js'
import { isTerminal } from '../task-entry.js'
import { backgroundRecord } from '../task-record.js'
import { holdsSlot } from '../task-status.js'
import type { EventOf, Handlers, Registration, RegistryCore, RegistryPart } from './part.js'

export class ForegroundPart implements RegistryPart {
  readonly #core: RegistryCore

  constructor(core: RegistryCore) {
    this.#core = core
  }

  readonly on: Handlers<'task.detach'> = {
    'task.detach': (event, scope) => {
      this.#core.startNext(scope)
      return this.#detach(event)
    },
  }

  refuse({ admission, parent }: Registration): AdmissionRefusal | undefined {
    const isCounted = neededPool(admission, parent !== undefined) === 'foreground'
    return isCounted && !this.#core.queue.pools.foreground.hasRoom() ? 'no-foreground-room' : undefined
  }

  /** Moves a foreground task to the background, where it needs a slot of its pool. */
  #detach({ entry, mayExceed }: EventOf<'task.detach'>): Detachment {
    const { record } = entry
    if (isTerminal(record)) return 'ended'
    if (record.isForeground !== true) return 'background'
    const { queue, changes } = this.#core
    const slots = queue.pools.ofTask(record)
    const holdsNone = holdsSlot(record.status) && !slots.holds(entry)
    const exceeds = holdsNone && !slots.hasRoomFor(record.owner)
    if (exceeds && !mayExceed) return 'no-room'
    if (holdsNone) slots.take(entry, true)
    // A task that exceeds the maximum of its pool also keeps its foreground slot. So the limit of foreground tasks bounds the number of such tasks.
    if (!exceeds) queue.pools.foreground.release(entry)
    // A task between two runs now waits for a slot of its pool.
    queue.moveToPool(entry, slots)
    entry.record = backgroundRecord(record)
    changes.detached(entry)
    return 'detached'
  }
}
