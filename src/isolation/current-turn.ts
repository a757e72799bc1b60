/**
 * Knows, inside the function `respond` of `createTurns` and the function of `withTurn`, to which turn a call belongs. A turn ends when it has settled. What it has started by
 * then and what runs longer, such as a background task, is outside of it. Works only in Node.
 */
import type { AsyncLocalStorage } from 'node:async_hooks'
import { isNode, nodeBuiltin } from '../system/node-builtins.js'

/** A lease on results that the agent has received in a turn (`HeldLease`). */
export interface TurnLease {
  readonly deliveryId?: string | undefined
  readonly acknowledge: () => void
  readonly release: (options?: { readonly mayHaveArrived?: boolean }) => void
}

/**
 * A turn, and the leases on the results that the agent has received in it. The results count as delivered when the turn is accepted. When it has failed,
 * its messages may be lost, so the results are delivered again (promise H6).
 */
export class TurnMarker {
  readonly #outer: TurnMarker | undefined
  readonly #isKept: boolean
  readonly #leases: TurnLease[] = []
  #outcome: 'accepted' | 'failed' | undefined
  #isSuspended = false

  /**
   * @param outer the turn that contains this one. It takes over the leases when this one is accepted
   * @param isKept whether the messages of the turn are stored only when it is accepted, so that nothing of a failed turn has arrived
   */
  constructor(outer?: TurnMarker, isKept = false) {
    this.#outer = outer
    this.#isKept = isKept
  }

  /** Whether the turn goes on after `respond` has settled, for example because a person has to approve a call. */
  get isSuspended(): boolean {
    return this.#isSuspended
  }

  setSuspended(isSuspended: boolean): void {
    this.#isSuspended = isSuspended
  }

  get isOver(): boolean {
    return this.#outcome !== undefined
  }

  /** Whether this turn is `turn`, or begun inside of it. */
  isWithin(turn: TurnMarker): boolean {
    return this === turn || this.#outer?.isWithin(turn) === true
  }

  /** The turn that contains this one, and is contained in no other. */
  get outermost(): TurnMarker {
    return this.#outer?.outermost ?? this
  }

  /** The ids of the deliveries whose leases the turn holds. */
  get deliveryIds(): readonly string[] {
    return this.#leases.flatMap(({ deliveryId }) => deliveryId ?? [])
  }

  /** Takes over a lease. A call may return after the turn: then its lease ends at once, as those of the turn have ended. */
  readonly hold = (lease: TurnLease): void => {
    if (this.#outcome === undefined) this.#leases.push(lease)
    else this.#end(lease, this.#outcome)
  }

  /** Ends all leases in one tick, so that the messages of one turn do not confirm each other (promise K5). */
  end(outcome: 'accepted' | 'failed'): void {
    this.#outcome ??= outcome
    for (const lease of this.#leases.splice(0)) this.#end(lease, this.#outcome)
  }

  #end(lease: TurnLease, outcome: 'accepted' | 'failed'): void {
    if (outcome === 'failed') lease.release({ mayHaveArrived: !this.#isKept })
    else if (this.#outer === undefined) lease.acknowledge()
    else this.#outer.hold(lease)
  }
}

let markers: AsyncLocalStorage<TurnMarker | undefined> | undefined

/** Runs `respond` as a turn. The turn ends when its promise has settled, unless it was suspended. */
export async function runInTurn<T>(turn: TurnMarker, respond: () => T | PromiseLike<T>): Promise<T> {
  turn.setSuspended(false)
  try {
    const answer = await (isNode ? asTurn(turn, respond) : respond())
    if (!turn.isSuspended) turn.end('accepted')
    return answer
  } catch (error) {
    turn.setSuspended(false)
    turn.end('failed')
    throw error
  }
}

function asTurn<T>(turn: TurnMarker, respond: () => T): T {
  markers ??= new (nodeBuiltin('node:async_hooks').AsyncLocalStorage)()
  return markers.run(turn, respond)
}

/** Returns the turn that the calling code is part of; undefined outside of turns, and after the end of the turn. */
export function currentTurn(): TurnMarker | undefined {
  const turn = markers?.getStore()
  return turn?.isOver === true ? undefined : turn
}

/** Calls `work` as code that belongs to no turn. */
export function outsideOfTurns<T>(work: () => T): T {
  return markers?.getStore() === undefined ? work() : markers.run(undefined, work)
}
