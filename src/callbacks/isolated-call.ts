/** Calls of the host's code that cannot harm the caller, whether the host answers at once or with a promise (A2). */

/** Runs a callback: what it throws, or what a promise it returned rejects with, goes to `report` and no further. */
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
