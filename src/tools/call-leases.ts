/** The leases on the task results that one call of a tool returns. */
import type { HeldLease, HoldLease } from '../features/delivery/leases.js'
import { currentTurn } from '../isolation/current-turn.js'

/**
 * Returns who decides whether the result of a call has arrived: the caller (`ToolContext.hold`), or the turn that the calling code is part of (promise
 * H6). Without both, it counts as arrived when the call returns.
 */
export function receiverOf(hold: HoldLease | undefined): HoldLease {
  return hold ?? currentTurn()?.hold ?? (({ acknowledge }) => acknowledge())
}

/** Collects the leases of a call, until it is certain that the call returns its result. */
export class CallLeases {
  readonly #receiver: HoldLease
  readonly #leases: HeldLease[] = []

  /** Created when the call begins, because its turn may be over when it returns. */
  constructor(hold: HoldLease | undefined) {
    this.#receiver = receiverOf(hold)
  }

  readonly hold: HoldLease = (lease) => {
    this.#leases.push(lease)
  }

  /** Passes the leases on. Returns the ids of their deliveries, for the result of the call. */
  pass(): readonly string[] {
    const leases = this.#leases.splice(0)
    for (const lease of leases) this.#receiver(lease)
    return leases.flatMap(({ deliveryId }) => deliveryId ?? [])
  }

  /** The call has failed, so its caller has not received the results. */
  release(): void {
    for (const lease of this.#leases.splice(0)) lease.release()
  }
}
