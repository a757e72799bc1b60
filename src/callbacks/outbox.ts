/**
 * Applies changes first and notifies afterwards. A batch completes its change, then notifies the host in the order of the changes. A change made by a
 * host's callback is applied and answered at once; its notifications are queued behind those that are already waiting.
 */
export interface Outbox<Item> {
  /** Runs a change. Everything queued by it, or by batches inside it, is delivered when the outermost batch ends. */
  readonly batch: <T>(change: () => T) => T
  /** Queues a notification. Call it inside a batch. */
  readonly push: (item: Item) => void
  /** Delivers the queue, if no batch is open and `mayDeliver` allows it. */
  readonly drain: () => void
  /** Marks the current queue for the next `release`. */
  readonly mark: () => void
  /** Delivers everything up to the last `mark`, even if `mayDeliver` holds back the rest. */
  readonly release: () => void
  /** Drops queued items that are no longer wanted. */
  readonly drop: (isUnwanted: (item: Item) => boolean) => void
}

/** The callbacks of an outbox. They isolate the host's code themselves and must not throw. */
export interface OutboxOptions<Item> {
  readonly notify: (item: Item) => void
  /** Called after each change, still inside its batch. */
  readonly onChanged?: () => void
  /** Called when the queue has become empty. */
  readonly onDrained?: () => void
  /** Called instead of `onDrained` when the rest of the queue must wait. */
  readonly onHeld?: () => void
  /** Whether the queue may be delivered now. If not, it waits for the next batch, `drain` or `release`. Default: always. */
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
  /** How many items at the head of the queue are marked, and how many of these are released. */
  let marked = 0
  let released = 0
  let depth = 0
  let isDraining = false
  /** Takes the items that may be delivered now. Returns undefined if they must wait. */
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
