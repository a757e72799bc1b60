/**
 * Changes first, notifications afterwards: a batch runs a change to its end, then notifies the host in the order of the changes,
 * never from inside one. A change made by a host's callback is applied and answered at once; its own notifications follow those
 * that are already queued.
 */
export interface Outbox<Item> {
  /** Runs a change. What it queues, and what batches inside it queue, is delivered when the outermost batch has ended. */
  readonly batch: <T>(change: () => T) => T
  /** Queues a notification. Call it inside a batch. */
  readonly push: (item: Item) => void
  /** Delivers what is queued, if it may be delivered now and no batch is open. */
  readonly drain: () => void
  /** What is queued now may be delivered at the next `release`. */
  readonly mark: () => void
  /** Delivers what was queued at the last `mark`, also while the rest may not be delivered. */
  readonly release: () => void
  /** Drops what is queued and not wanted any longer. */
  readonly drop: (isUnwanted: (item: Item) => boolean) => void
}

/** The callbacks of an outbox. They isolate the host's callbacks themselves, and do not throw. */
export interface OutboxOptions<Item> {
  /** Delivers one item. */
  readonly notify: (item: Item) => void
  /** Called after each change, while it still counts as a part of its batch. */
  readonly onChanged?: () => void
  /** Called each time the queue has become empty. */
  readonly onDrained?: () => void
  /** Called instead when the rest of the queue has to wait. */
  readonly onHeld?: () => void
  /** Whether what is queued may be delivered now. If not, it waits for the next batch, `drain` or `release`. Default: always. */
  readonly mayDeliver?: () => boolean
}

/** Makes an empty outbox. */
export function createOutbox<Item>({
  notify,
  onChanged,
  onDrained,
  onHeld,
  mayDeliver = () => true,
}: OutboxOptions<Item>): Outbox<Item> {
  let items: Item[] = []
  /** How many of the queued items are marked, and how many of these are released: the first ones. */
  let marked = 0
  let released = 0
  let depth = 0
  let isDraining = false
  /** Takes what may be delivered now; undefined when that has to wait. */
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
