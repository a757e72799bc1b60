/** The slots of tasks, and the time limits of tasks that wait for them (promise F8). */
import type { TaskFailure } from '../records.js'
import type { Due } from '../start-queue.js'
import type { Handlers, RegistryCore, RegistryPart, Scope } from './part.js'

export class SlotsPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #expiry: TaskFailure

  /** @param expiry the error of a task that has waited too long for a slot */
  constructor(core: RegistryCore, expiry: TaskFailure) {
    this.#core = core
    this.#expiry = expiry
  }

  readonly on: Handlers<'limit.set' | 'slot.release'> = {
    'limit.set': ({ pool, max }) => {
      this.#core.queue.pools.of(pool).max = max
      this.#core.history.limitChanged()
      this.#core.prune()
    },
    'slot.release': ({ entry }) => {
      this.#core.queue.free(entry)
    },
  }

  next(): Due | undefined {
    return this.#core.queue.nextExpiry
  }

  due(_now: number, scope: Scope): void {
    // A task for which a slot is free starts, although it has waited too long.
    this.#core.startNext(scope)
    for (const { ref } of this.#core.queue.takeExpired()) {
      scope.defer(() => ref?.send({ type: 'task.fail', ...this.#expiry }))
    }
  }
}
