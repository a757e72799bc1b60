/**
 * The registry's actor as the host gets it: an observer inside a transition could not get true answers (a send to an
 * actor that is processing is put off), and its exception would end the process. So observers are told afterwards.
 */
import type { Observable } from 'rxjs'
import type { Observer, Subscription } from 'xstate'
import type { TaskRegistryEvent, TaskRegistryRef, TaskRegistrySnapshot } from '../../machines/task-registry.js'
import type { RegistryCore } from './core.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'

/** The actor ref, with `subscribe` and `send` that keep to the rules of `core.ts`. */
export function guardActor(core: RegistryCore): TaskRegistryRef {
  const snapshots$: Observable<TaskRegistrySnapshot> = new IsolatedObservable<TaskRegistrySnapshot>(
    (error) => core.report(error, { source: 'actor-observer' }),
    (subscriber) => {
      let last = core.registry.getSnapshot()
      let lastSeq = core.seq
      return core.idle$.subscribe({
        next: () => {
          const snapshot = core.registry.getSnapshot()
          // The ledger changes in place, so its number counts too.
          if (snapshot === last && core.seq === lastSeq) return
          last = snapshot
          lastSeq = core.seq
          subscriber.next(snapshot)
        },
        complete: () => subscriber.complete(),
      })
    },
  )
  const subscribe = (
    observer: Partial<Observer<TaskRegistrySnapshot>> | ((snapshot: TaskRegistrySnapshot) => void),
    _error?: (error: unknown) => void,
    complete?: () => void,
  ): Subscription => {
    const given = typeof observer === 'function' ? { next: observer, complete } : observer
    return snapshots$.subscribe({
      ...(given.next && { next: (snapshot) => given.next?.(snapshot) }),
      ...(given.complete && { complete: () => given.complete?.() }),
    })
  }
  const send = (event: TaskRegistryEvent): void => core.transact(() => core.send(event))
  const replaced = new Map<PropertyKey, unknown>([
    ['subscribe', subscribe],
    ['send', send],
  ])
  return new Proxy(core.registry, {
    get(actor, key) {
      if (replaced.has(key)) return replaced.get(key)
      const value: unknown = Reflect.get(actor, key, actor)
      return typeof value === 'function' ? (value.bind(actor) as unknown) : value
    },
  })
}
