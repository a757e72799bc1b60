/** A value that is there, or is on its way: one process answers at once, a cluster when Redis has answered. */
import { isThenable } from '../callbacks/isolated-call.js'

export type Eventually<T> = T | Promise<T>

/** Calls `use` with the value: in this turn when it is there, so that nothing comes between. */
export function whenThere<T, R>(value: Eventually<T>, use: (value: T) => Eventually<R>): Eventually<R> {
  return isThenable(value) ? value.then(use) : use(value)
}
