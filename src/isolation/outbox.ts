/**
 * Separates changes from their notifications. A batch first completes its change, and then notifies the host, in the order of the changes. If a
 * callback of the host makes another change, that change is applied at once. Its notifications wait behind those that are already queued.
 */
export interface Outbox<Item> {
  /** Runs a change and returns its result. Notifications that the change queues are delivered when the outermost batch ends. */
  readonly batch: <T>(change: () => T) => T
  /** Queues a notification. Call this method inside a batch. */
  readonly push: (item: Item) => void
  /** Delivers the queued notifications, unless a batch is open or `mayDeliver` returns false. */
  readonly drain: () => void
  /** Marks the notifications that are queued now, for the next `release`. */
  readonly mark: () => void
  /** Delivers the marked notifications, even if `mayDeliver` returns false. The others stay queued. */
  readonly release: () => void
  /** Drops queued notifications that are not wanted any more. */
  readonly drop: (isUnwanted: (item: Item) => boolean) => void
}

/** The callbacks of an outbox. They must not throw, so they isolate the code of the host themselves. */
export interface OutboxOptions<Item> {
  readonly notify: (item: Item) => void
  /** Called after each change, while its batch is still open. */
  readonly onChanged?: () => void
  /** Called when all queued notifications were delivered. */
  readonly onDrained?: () => void
  /** Called instead of `onDrained` when `mayDeliver` has held back notifications. */
  readonly onHeld?: () => void
  /** Whether queued notifications may be delivered now. If not, they wait for the next batch, `drain` or `release`. Default: always. */
  readonly mayDeliver?: () => boolean
}

export function createOutbox<Item>({
  notify,
  onChanged,
  onDrained,
  onHeld,
  mayDeliver = () => true,
}: OutboxOptions<Item>): Outbox<Item> {
  let items: Item[] = []
  /** The number of queued notifications that are marked, and how many of these `release` has released. They are at the head of the queue. */
  let marked = 0
  let released = 0
  let depth = 0
  let isDraining = false
  /** Removes and returns the notifications that may be delivered now. Returns undefined if they must wait. */
  const take = (): Item[] | undefined => {
    const isFree = mayDeliver()
    if (!isFree && released === 0) return undefined
    const taken = items
    const count = isFree ? taken.length : released
    items = count === taken.length ? [] : taken.splice(count)
    marked = Math.max(marked - count, 0)
    released = 0
    return taken
  }
  const deliver = (): void => {
    do {
      const queued = take()
      if (queued === undefined) {
        onHeld?.()
        return
      }
      for (const item of queued) notify(item)
      if (items.length === 0) onDrained?.()
    } while (items.length > 0)
  }
  const drain = (): void => {
    if (depth > 0 || isDraining) return
    isDraining = true
    try {
      deliver()
    } finally {
      isDraining = false
    }
  }
  return {
    drain,
    push: (item) => {
      items.push(item)
    },
    mark: () => {
      marked = items.length
    },
    release: () => {
      released = marked
      drain()
    },
    drop: (isUnwanted) => {
      const keep = (item: Item): boolean => !isUnwanted(item)
      marked = items.slice(0, marked).filter(keep).length
      released = items.slice(0, released).filter(keep).length
      items = items.filter(keep)
    },
    batch: (change) => {
      depth += 1
      try {
        return change()
      } finally {
        onChanged?.()
        depth -= 1
        drain()
      }
    },
  }
}
