/** Passes each item of a stream to the listeners of its owner. One subscription serves all of them, so an idle owner makes no item slower. */
import { Observable, Subject, type Subscription } from 'rxjs'

/** The key of the listeners to all owners. An owner has a name of at least one character. */
const ALL = ''

export class OwnerFeed<Item extends { readonly owner: string }> {
  readonly #source: Observable<Item>
  readonly #listeners = new Map<string, Subject<Item>>()
  #subscription: Subscription | undefined

  constructor(source: Observable<Item>) {
    this.#source = source
  }

  /** Emits the items of one owner, or of all owners. Subscribers must not throw. */
  of(owner = ALL): Observable<Item> {
    return new Observable((subscriber) => {
      const listeners = this.#listeners.get(owner) ?? new Subject<Item>()
      this.#listeners.set(owner, listeners)
      const listening = listeners.subscribe(subscriber)
      this.#subscription ??= this.#source.subscribe((item) => this.#pass(item))
      return () => {
        listening.unsubscribe()
        if (listeners.observed || this.#listeners.get(owner) !== listeners) return
        this.#listeners.delete(owner)
        if (this.#listeners.size > 0) return
        this.#subscription?.unsubscribe()
        this.#subscription = undefined
      }
    })
  }

  /** The owners that have a listener. */
  get owners(): string[] {
    return [...this.#listeners.keys()].filter((owner) => owner !== ALL)
  }

  /** Completes all listeners. */
  close(): void {
    for (const listeners of [...this.#listeners.values()]) listeners.complete()
  }

  #pass(item: Item): void {
    for (const key of [item.owner, ALL]) this.#listeners.get(key)?.next(item)
  }
}
