/** A value or its promise: one process has it at once, a cluster when Redis has answered. */
import { isThenable } from '../callbacks/isolated-call.js'

export type Eventually<T> = T | Promise<T>

/** Calls `use` with the value, synchronously if it is not a promise, so that no other change comes in between. */
export function whenThere<T, R>(value: Eventually<T>, use: (value: T) => Eventually<R>): Eventually<R> {
  return isThenable(value) ? value.then(use) : use(value)
}
