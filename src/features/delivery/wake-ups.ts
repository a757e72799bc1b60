/** Events after which a delivery may be possible, by the owner that they concern. */
import { map, Observable, type Subscriber } from 'rxjs'
import type { RegistryNotification } from '../../../machines/change-feed.js'
import type { DeliveryEvent } from '../../../machines/delivery.js'
import type { Feature } from '../../async-tasks/feature.js'
import { OwnerFeed } from '../../async-tasks/owner-feed.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

interface WakeUp {
  readonly owner: string
  readonly event: DeliveryEvent
}

export class WakeUps implements Feature {
  readonly #registry: TaskRegistry
  readonly #feed: OwnerFeed<WakeUp>

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    this.#feed = new OwnerFeed(
      new Observable((feed) => registry.notifications$.subscribe((item) => this.#pass(item, feed))),
    )
  }

  /** Emits the owner of each event. Subscribers must not throw. */
  owners(): Observable<string> {
    return this.#feed.of().pipe(map(({ owner }) => owner))
  }

  /** Emits the events of one owner. Subscribers must not throw. */
  of(owner: string): Observable<DeliveryEvent> {
    return this.#feed.of(owner).pipe(map(({ event }) => event))
  }

  disposed(): void {
    this.#feed.close()
  }

  #pass(item: RegistryNotification, feed: Subscriber<WakeUp>): void {
    if (item.type === 'lease.ended') feed.next({ owner: item.owner, event: { type: 'lease.ended' } })
    else for (const owner of this.#ownersOf(item)) feed.next({ owner, event: { type: 'delivery.requested' } })
  }

  /** The owners to whom something may be delivered because of this. */
  #ownersOf(item: RegistryNotification): Iterable<string> {
    if (item.type === 'questions.owed') return [item.owner]
    if (item.type === 'hold') return item.owner === undefined ? this.#owners() : [item.owner]
    return item.type === 'transition' && item.transition.record.delivery === 'owed' ? [item.transition.owner] : []
  }

  /** The owners that have a listener, or to whom something is owed. */
  #owners(): Set<string> {
    return new Set([...this.#feed.owners, ...this.#registry.ledger.countsByOwner('owed').keys()])
  }
}

export const wakeUps = (registry: TaskRegistry): WakeUps => new WakeUps(registry)
