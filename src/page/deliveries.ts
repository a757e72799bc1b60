/**
 * The state of the deliveries to each owner, and the messages that carried results. When there are too many owners, those with nothing owed are
 * removed first. A run counts as an owner only while something is owed to it, or after a message has carried results to it.
 */
import { deliveryStandings } from '../async-tasks/delivery/delivery-standings.js'
import { pushSubscribers } from '../async-tasks/delivery/push-subscribers.js'
import { runOfOwner } from '../../machines/families.js'
import type { AsyncTaskInfo, TaskTransition } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { unrefTimer } from '../clock.js'
import { asyncKey } from './async-entry.js'
import { reasonOf, stateOf } from './delivery-reasons.js'
import { OwnerMessages } from './owner-messages.js'
import { heldBytes, ownText } from './texts.js'
import { Versioned, type Versions } from './versioned.js'
import type { OwnerDelivery } from './wire.js'

const MAX_OWNERS = 1000

/** The maximum of listed waiting tasks per owner, and the maximum of their keys in bytes. */
const MAX_WAITING = 200
const MAX_WAITING_BYTES = 16 * 1024

/** The minimum time between two updates of an owner, in ms, and the maximum number of owners that are sent. */
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
  /** Owners with nothing owed, the longest idle first. */
  readonly #idle = new Set<string>()
  /** Owners with owed results that exceed the maximum. The manager still tracks each of them. */
  readonly #leftOut = new Set<string>()
  /** The owed and leased tasks of the journal, by owner. */
  readonly #waiting = new Map<string, Set<string>>()
  /** Owners that have changed since they were last sent. */
  readonly #changed = new Set<string>()
  readonly #subscription: { unsubscribe(): void }
  /** The timer until owners may be sent again. */
  #window: unknown

  /** @param onChange called when the state of an owner's deliveries changes */
  constructor(manager: AsyncTaskManager, versions: Versions, onChange: () => void) {
    this.#manager = manager
    this.#onChange = onChange
    this.#owners = new Versioned(versions)
    const standings = manager.reads.use(deliveryStandings)
    for (const owner of standings.owners()) this.#touch(owner)
    this.#subscription = standings.changed$.subscribe((owner) => {
      this.#touch(owner)
      onChange()
    })
  }

  stop(): void {
    this.#subscription.unsubscribe()
    if (this.#window !== undefined) this.#manager.reads.clock.clearTimeout(this.#window)
  }

  /** The number of owed results, including those in messages. */
  get owed(): number {
    const { ledger } = this.#manager.reads
    return ledger.countOf('owed') + ledger.countOf('leased')
  }

  /** The number of owners with something owed that are not shown. */
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
   * Handles a change of a task. Without a transition the task existed before.
   * @param isKept whether the journal has it
   */
  note(record: AsyncTaskInfo, transition: TaskTransition | undefined, isKept = true): void {
    const { id, owner: name, delivery } = record
    const key = asyncKey(id)
    if (transition?.kind === 'owner') this.#stopWaiting(transition.from, key)
    if (isKept && (delivery === 'owed' || delivery === 'leased')) this.#startWaiting(name, key)
    else this.#stopWaiting(name, key)
    // Most changes of a task do not concern its delivery.
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

  /** Handles a task that the journal has dropped. */
  forget(key: string, name: string): void {
    if (this.#stopWaiting(name, key)) this.#send(name)
  }

  #startWaiting(name: string, key: string): void {
    const waiting = this.#waiting.get(name)
    if (waiting === undefined) this.#waiting.set(name, new Set([key]))
    else waiting.add(key)
  }

  /** @returns whether it was waiting */
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
   * Handles a change of an owner's deliveries.
   * @param hasMessage whether a message has carried a result to it
   * @returns undefined if the owner is not shown
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

  /** @returns false if something is owed to all shown owners */
  #makeRoom(): boolean {
    if (this.#owners.size < MAX_OWNERS) return true
    const [first] = this.#idle
    if (first !== undefined) this.#remove(first)
    return first !== undefined
  }

  /** Shows omitted owners in place of owners with nothing owed. */
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

  /** Sends a changed owner. The first is sent at once, later ones when the time window is over. */
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
    const standings = reads.use(deliveryStandings)
    const [owed, leased] = [ledger.countOf('owed', name), ledger.countOf('leased', name)]
    const standing = standings.of(name)[0]
    const state = stateOf(standing)
    return {
      owner: name,
      owed,
      leased,
      delivered,
      state,
      ...(standing?.until !== undefined && { until: standing.until }),
      reason: reasonOf({
        name,
        owed,
        leased,
        state,
        standing,
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
