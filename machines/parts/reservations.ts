/** Reservations: slots that are held for tasks that are not registered yet (promise A3). */
import type { Due } from '../start-queue.js'
import type { Handlers, RegistryCore, RegistryPart } from './part.js'

export class ReservationsPart implements RegistryPart {
  readonly #core: RegistryCore

  constructor(core: RegistryCore) {
    this.#core = core
  }

  readonly on: Handlers<'reservation.take' | 'reservation.cancel'> = {
    'reservation.take': ({ reservationId, ttlMs, owner }, scope) => {
      this.#core.startNext(scope)
      const { task } = this.#core.queue.pools
      const isTaken = owner === undefined ? task.hasRoom() : task.hasRoomFor(owner)
      if (isTaken) task.reserve(reservationId, ttlMs, owner)
      return isTaken
    },
    'reservation.cancel': ({ reservationId }) => this.#core.queue.pools.task.cancelReservation(reservationId),
  }

  next(): Due | undefined {
    const at = this.#core.queue.pools.task.nextExpiry
    return at === undefined ? undefined : { at, entry: undefined }
  }
}
