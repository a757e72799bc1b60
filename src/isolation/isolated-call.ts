/** Calls code of the host. Its exceptions and rejections do not reach the caller (promise A2). */

/** Runs a callback and passes its exception, or the rejection of its promise, to `report`. */
export function callIsolated(run: () => unknown, report: (error: unknown) => void): void {
  try {
    const result = run()
    // If an async callback rejects and nobody handles the rejection, Node ends the process.
    if (isThenable(result)) Promise.resolve(result).then(undefined, report)
  } catch (error) {
    report(error)
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
