/** Starts work that a run need not await: its rejection does not end the process. An exception of `start` becomes a rejection. */
export function unawaited<T>(start: () => Promise<T>): Promise<T> {
  const promise = (async () => start())()
  promise.catch(() => undefined)
  return promise
}
