/** Starts what a run may leave without anyone who awaits it: its rejection does not end the process. What `start` throws is a rejection, too. */
export function unawaited<T>(start: () => Promise<T>): Promise<T> {
  const promise = (async () => start())()
  promise.catch(() => undefined)
  return promise
}
