/** Calls the host's code and keeps its exceptions and rejections from the caller (promise A2). */

/** Runs a callback and passes its exception, or the rejection of its promise, to `report`. */
export function callIsolated(run: () => unknown, report: (error: unknown) => void): void {
  try {
    const result = run()
    // An async callback that rejects would otherwise end the process as an unhandled rejection.
    if (isThenable(result)) Promise.resolve(result).then(undefined, report)
  } catch (error) {
    report(error)
  }
}

/** Whether a value has a `then` method. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
