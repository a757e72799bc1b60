/** Calls of the host's code whose exceptions and rejections do not reach the caller (A2). */

/** Runs a callback. An exception, or the rejection of the promise that it returns, goes to `report`. */
export function callIsolated(run: () => unknown, report: (error: unknown) => void): void {
  try {
    const result = run()
    // An async callback that rejects would otherwise end the process as an unhandled rejection.
    if (isThenable(result)) Promise.resolve(result).then(undefined, report)
  } catch (error) {
    report(error)
  }
}

/** Whether a value can be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
