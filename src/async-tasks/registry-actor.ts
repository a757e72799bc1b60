/**
 * The registry's actor as the host gets it. An observer inside a transition could not get true answers (a send to an actor that is
 * processing is deferred), and its exception would end the process: observers are notified afterwards.
 */
import type { Observer, Subscription } from 'rxjs'
import type { RegistrySnapshot } from '../../machines/task-registry.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'
import type { TaskRegistry } from './registry.js'

/** Reads and observes the registry's snapshots, as an XState actor does. */
export interface RegistryActor {
  /** The present snapshot: frozen, with counts and never contents. */
  getSnapshot(): RegistrySnapshot
  /** Notifies the observer of each new snapshot, after its transition; completes on `dispose`. */
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
