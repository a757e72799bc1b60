/**
 * The registry as an actor that the host can observe. Observers are notified after a transition. Inside a transition they could not call manager
 * methods, because XState defers events to an actor that is processing another event.
 */
import type { Observer, Subscription } from 'rxjs'
import type { RegistrySnapshot } from '../../machines/registry-snapshot.js'
import { IsolatedObservable } from '../isolation/isolated-observable.js'
import type { TaskRegistry } from './registry.js'

/** Reads and observes the registry's snapshots, like an XState actor. */
export interface RegistryActor {
  /** Returns the current frozen snapshot. It contains counts but no records. */
  getSnapshot(): RegistrySnapshot
  /** Notifies the observer of each new snapshot, after its transition. Completes on `dispose`. */
  subscribe(observer: Partial<Observer<RegistrySnapshot>> | ((snapshot: RegistrySnapshot) => void)): Subscription
}

export function createRegistryActor(registry: TaskRegistry): RegistryActor {
  const snapshots$ = new IsolatedObservable<RegistrySnapshot>(
    (error) => registry.report(error, { source: 'actor-observer' }),
    (subscriber) => {
      let last = registry.snapshot
      return registry.drained$.subscribe({
        next: () => {
          const { snapshot } = registry
          if (snapshot === last) return
          last = snapshot
          subscriber.next(snapshot)
        },
        complete: () => subscriber.complete(),
      })
    },
  )
  return {
    getSnapshot: () => registry.snapshot,
    subscribe: (observer) => snapshots$.subscribe(typeof observer === 'function' ? { next: observer } : observer),
  }
}
