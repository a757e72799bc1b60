/** The last entries of a log. Their number and their total size in bytes are limited. */
export interface Recent<T> {
  add(entry: T): void
  readonly entries: readonly T[]
  readonly dropped: number
}

/** @param bytesOf returns the size of an entry, in bytes. Called once for each entry */
export function createRecent<T>(limits: { count: number; bytes: number }, bytesOf: (entry: T) => number): Recent<T> {
  let kept: { entry: T; bytes: number }[] = []
  let bytes = 0
  let dropped = 0
  return {
    add: (entry) => {
      const size = bytesOf(entry)
      kept.push({ entry, bytes: size })
      bytes += size
      let excess = 0
      while (kept.length - excess > limits.count || bytes > limits.bytes) {
        bytes -= kept[excess]?.bytes ?? 0
        excess += 1
      }
      if (excess > 0) kept = kept.slice(excess)
      dropped += excess
    },
    get entries() {
      return kept.map(({ entry }) => entry)
    },
    get dropped() {
      return dropped
    },
  }
}
