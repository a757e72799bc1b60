/** Starts work whose promise a caller may ignore: its rejection does not end the process. If `start` throws, the promise rejects. */
export function unawaited<T>(start: () => Promise<T>): Promise<T> {
  const promise = (async () => start())()
  promise.catch(() => undefined)
  return promise
}
