/** The outcome of a promise, for code that polls it between turns of a clock instead of awaiting it. */

export interface Settling<T> {
  /** `undefined` until the promise has settled. */
  readonly outcome: { readonly value: T } | { readonly error: unknown } | undefined
}

/** @param onSettled called as soon as the outcome is known */
export function watchPromise<T>(promise: PromiseLike<T>, onSettled: () => void = () => undefined): Settling<T> {
  const settling: { outcome: Settling<T>['outcome'] } = { outcome: undefined }
  promise.then(
    (value) => {
      settling.outcome = { value }
      onSettled()
    },
    (error: unknown) => {
      settling.outcome = { error }
      onSettled()
    },
  )
  return settling
}
