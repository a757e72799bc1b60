/**
 * Changes first, notifications afterwards: a batch runs a change to its end, then notifies the host in the order of the changes,
 * never from inside one. A change made by a host's callback is applied and answered at once; its own notifications follow those
 * that are already queued.
 */
export interface Outbox<Item> {
  /** Runs a change. What it queues, and what batches inside it queue, is delivered when the outermost batch has ended. */
  batch<T>(change: () => T): T
  /** Queues a notification. Call it inside a batch. */
  push(item: Item): void
}

/**
 * @param notify delivers one item; it isolates the host's callbacks itself and does not throw
 * @param onDrained called each time the queue has become empty
 */
export function createOutbox<Item>(notify: (item: Item) => void, onDrained?: () => void): Outbox<Item> {
  const items: Item[] = []
  let depth = 0
  let isDraining = false
  const drain = (): void => {
    isDraining = true
    try {
      do {
        for (const item of items.splice(0)) notify(item)
        if (items.length === 0) onDrained?.()
      } while (items.length > 0)
    } finally {
      isDraining = false
    }
  }
  return {
    push: (item) => items.push(item),
    batch: (change) => {
      depth += 1
      try {
        return change()
      } finally {
        depth -= 1
        if (depth === 0 && !isDraining) drain()
      }
    },
  }
}
