/** A value, or a promise of it. A server in one process has the value at once. In a cluster, Redis must answer first. */
import { isThenable } from '../../isolation/isolated-call.js'

export type Eventually<T> = T | Promise<T>

/** Calls `use` with the value. If the value is not a promise, the call is synchronous, so that no other change happens before it. */
export function whenThere<T, R>(value: Eventually<T>, use: (value: T) => Eventually<R>): Eventually<R> {
  return isThenable(value) ? value.then(use) : use(value)
}
