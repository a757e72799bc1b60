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
  /** Whether what is queued may be delivered now. If not, it waits for the next batch or `drain`. Default: always. */
  readonly mayDeliver?: () => boolean
}

/** Makes an empty outbox. */
export function createOutbox<Item>({
  notify,
  onChanged,
  onDrained,
  mayDeliver = () => true,
}: OutboxOptions<Item>): Outbox<Item> {
  let items: Item[] = []
  let depth = 0
  let isDraining = false
  const drain = (): void => {
    if (depth > 0 || isDraining || !mayDeliver()) return
    isDraining = true
    try {
      do {
        const queued = items
        items = []
        for (const item of queued) notify(item)
        if (items.length === 0) onDrained?.()
      } while (items.length > 0 && mayDeliver())
    } finally {
      isDraining = false
    }
  }
  return {
    drain,
    push: (item) => {
      items.push(item)
    },
    drop: (isUnwanted) => {
      items = items.filter((item) => !isUnwanted(item))
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
