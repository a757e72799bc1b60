/**
 * Changes first, telling afterwards: runs a change to its end and then tells the host, in the order of the changes, never from inside
 * one. What a host's callback changes is applied and answered at once, and told after what is already waiting.
 */
export interface Outbox<Item> {
  /** Runs a change. Its items, and those of changes inside it, are told when the outermost change has ended. */
  transact<T>(change: () => T): T
  /** Puts something to tell in the queue; to be called inside a change. */
  push(item: Item): void
}

/** @param tell tells one item; it isolates the host's callbacks itself and does not throw */
export function createOutbox<Item>(tell: (item: Item) => void): Outbox<Item> {
  const items: Item[] = []
  let depth = 0
  let isTelling = false
  const tellAll = (): void => {
    isTelling = true
    try {
      while (items.length > 0) for (const item of items.splice(0)) tell(item)
    } finally {
      isTelling = false
    }
  }
  return {
    push: (item) => items.push(item),
    transact: (change) => {
      depth += 1
      try {
        return change()
      } finally {
        depth -= 1
        if (depth === 0 && !isTelling) tellAll()
      }
    },
  }
}
