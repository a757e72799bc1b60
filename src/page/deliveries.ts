/**
 * The deliveries to each owner, and the messages that carried results. The page shows at most 1000 owners. Owners without owed results are removed
 * first. A run of a task is shown as an owner if results are owed to it, or if a message has carried results to it.
 */
import { deliveryStates } from '../features/delivery/delivery-states.js'
import { pushSubscribers } from '../features/delivery/push-subscribers.js'
import { runOfOwner } from '../../machines/run-owner.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { TaskTransition } from '../../machines/transitions.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { unrefTimer } from '../system/clock.js'
import { asyncKey } from './async-entry.js'
import { reasonOf, stateOf } from './delivery-reasons.js'
import { OwnerMessages } from './owner-messages.js'
import { heldBytes, ownText } from './texts.js'
import { Versioned, type Versions } from './versioned.js'
import type { OwnerDelivery } from './wire.js'

const MAX_OWNERS = 1000

/** The maximum number of waiting tasks that are listed for one owner, and the maximum size of their keys in bytes. */
const MAX_WAITING = 200
const MAX_WAITING_BYTES = 16 * 1024

/** Changed owners are sent at most every 250 ms, and at most 100 of them at once. */
const WINDOW_MS = 250
const MAX_SENT = 100

class Owner {
  readonly name: string
  delivered = 0
  readonly messages = new OwnerMessages()

  constructor(name: string) {
    this.name = name
  }
}

export class Deliveries {
  readonly #manager: AsyncTaskManager
  readonly #onChange: () => void
  readonly #owners: Versioned<Owner>
  /** The shown owners without owed results, the longest idle first. */
  readonly #idle = new Set<string>()
  /** The owners with owed results that the page does not show, because it already shows the maximum. */
  readonly #leftOut = new Set<string>()
  /** The keys of tasks in the journal whose results are owed or leased, by owner. */
  readonly #waiting = new Map<string, Set<string>>()
  /** The owners whose latest change was not sent yet. */
  readonly #changed = new Set<string>()
  readonly #subscription: { unsubscribe(): void }
  /** The timer of the current time window. Until it ends, further changes of owners are collected. */
  #window: unknown

  /** @param onChange called when the deliveries to an owner have changed */
  constructor(manager: AsyncTaskManager, versions: Versions, onChange: () => void) {
    this.#manager = manager
    this.#onChange = onChange
    this.#owners = new Versioned(versions)
    const states = manager.reads.use(deliveryStates)
    for (const owner of states.owners()) this.#touch(owner)
    this.#subscription = states.changed$.subscribe((owner) => {
      this.#touch(owner)
      onChange()
    })
  }

  stop(): void {
    this.#subscription.unsubscribe()
    if (this.#window !== undefined) this.#manager.reads.clock.clearTimeout(this.#window)
  }

  /** The number of results that are not delivered yet: owed, or in a message that was not accepted yet. */
  get owed(): number {
    const { ledger } = this.#manager.reads
    return ledger.countOf('owed') + ledger.countOf('leased')
  }

  /** The number of owners with owed results that the page does not show. */
  get leftOut(): number {
    return this.#leftOut.size
  }

  all(): OwnerDelivery[] {
    return Array.from(this.#owners.values(), (owner) => this.#shown(owner))
  }

  /** Returns the changes since a version; undefined if they are no longer known. */
  since(
    version: number,
  ): { readonly owners: readonly OwnerDelivery[]; readonly removed: readonly string[] } | undefined {
    const difference = this.#owners.since(version)
    return difference && { owners: difference.changed.map((owner) => this.#shown(owner)), removed: difference.removed }
  }

  /**
   * Updates the owner of a task.
   * @param transition the change of the task; undefined for a task that existed before the page started
   * @param isKept whether the journal still has the task
   */
  note(record: AsyncTaskInfo, transition: TaskTransition | undefined, isKept = true): void {
    const { id, owner: name, delivery } = record
    const key = asyncKey(id)
    if (transition?.kind === 'owner') this.#stopWaiting(transition.from, key)
    if (isKept && (delivery === 'owed' || delivery === 'leased')) this.#startWaiting(name, key)
    else this.#stopWaiting(name, key)
    // A change of the status does not concern the deliveries to an owner that is already shown.
    if (transition?.kind === 'status' && this.#owners.get(name) !== undefined) return
    const carrier = transition?.kind === 'delivery' ? transition.deliveryId : undefined
    const owner = this.#touch(name, carrier !== undefined)
    if (owner !== undefined) {
      const isNow = transition === undefined || (transition.kind === 'delivery' && transition.to === 'delivered')
      if (isNow && delivery === 'delivered') owner.delivered += 1
      if (transition?.kind === 'delivery' && carrier !== undefined) owner.messages.note(key, carrier, transition)
    }
    if (transition?.kind === 'owner') this.#touch(transition.from)
    this.#fill()
  }

  /** Removes a task that the journal has dropped from the waiting tasks of its owner. */
  forget(key: string, name: string): void {
    if (this.#stopWaiting(name, key)) this.#send(name)
  }

  #startWaiting(name: string, key: string): void {
    const waiting = this.#waiting.get(name)
    if (waiting === undefined) this.#waiting.set(name, new Set([key]))
    else waiting.add(key)
  }

  /** @returns whether the task was waiting */
  #stopWaiting(name: string, key: string): boolean {
    const waiting = this.#waiting.get(name)
    if (waiting?.delete(key) !== true) return false
    if (waiting.size === 0) this.#waiting.delete(name)
    return true
  }

  #isOwed(name: string): boolean {
    const { ledger } = this.#manager.reads
    return ledger.countOf('owed', name) + ledger.countOf('leased', name) > 0
  }

  /**
   * Adds, updates or removes an owner after a change of the deliveries to it.
   * @param hasMessage whether a message has carried a result to the owner
   * @returns the owner; undefined if the page does not show it
   */
  #touch(name: string, hasMessage = false): Owner | undefined {
    const isOwed = this.#isOwed(name)
    const isListed = isOwed || hasMessage || runOfOwner(name) === undefined
    let owner = this.#owners.get(name)
    if (owner === undefined) {
      this.#leftOut.delete(name)
      if (!isListed) return undefined
      if (!this.#makeRoom()) {
        if (isOwed) this.#leftOut.add(name)
        return undefined
      }
      owner = new Owner(ownText(name))
      this.#owners.add(owner.name, owner)
    } else if (isListed || owner.messages.size > 0) this.#send(owner.name)
    else {
      this.#remove(name)
      return undefined
    }
    this.#idle.delete(name)
    if (!isOwed) this.#idle.add(owner.name)
    return owner
  }

  /** @returns false if every shown owner has owed results, so that none can be removed */
  #makeRoom(): boolean {
    if (this.#owners.size < MAX_OWNERS) return true
    const [first] = this.#idle
    if (first !== undefined) this.#remove(first)
    return first !== undefined
  }

  /** Shows owners that were left out in place of owners without owed results. */
  #fill(): void {
    for (const name of this.#leftOut) {
      if (this.#owners.size === MAX_OWNERS && this.#idle.size === 0) return
      this.#touch(name)
    }
  }

  #remove(name: string): void {
    this.#owners.remove(name)
    this.#idle.delete(name)
    this.#changed.delete(name)
  }

  /** Sends a changed owner: at once if no time window is open, otherwise when the window ends. */
  #send(name: string): void {
    if (this.#window === undefined) {
      this.#owners.touch(name)
      this.#startWindow()
    } else this.#changed.add(name)
  }

  #startWindow(): void {
    this.#window = this.#manager.reads.clock.setTimeout(() => {
      this.#window = undefined
      if (this.#changed.size === 0) return
      for (const name of [...this.#changed].slice(0, MAX_SENT)) {
        this.#changed.delete(name)
        this.#owners.touch(name)
      }
      this.#startWindow()
      this.#onChange()
    }, WINDOW_MS)
    unrefTimer(this.#window)
  }

  #shown({ name, delivered, messages }: Owner): OwnerDelivery {
    const { reads } = this.#manager
    const { ledger } = reads
    const states = reads.use(deliveryStates)
    const [owed, leased] = [ledger.countOf('owed', name), ledger.countOf('leased', name)]
    const delivery = states.of(name)[0]
    const state = stateOf(delivery)
    return {
      owner: name,
      owed,
      leased,
      delivered,
      state,
      ...(delivery?.until !== undefined && { until: delivery.until }),
      reason: reasonOf({
        name,
        owed,
        leased,
        state,
        delivery,
        isPushed: reads.use(pushSubscribers).has(name),
        isDelivering: ledger.isDelivering(name),
        runId: runOfOwner(name),
      }),
      messages: messages.shown(),
      waiting: firstKeys(this.#waiting.get(name) ?? []),
    }
  }
}

function firstKeys(keys: Iterable<string>): string[] {
  const first: string[] = []
  let bytes = 0
  for (const key of keys) {
    bytes += heldBytes(key)
    if (first.length === MAX_WAITING || bytes > MAX_WAITING_BYTES) break
    first.push(key)
  }
  return first
}
