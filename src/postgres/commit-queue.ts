/** Runs the writes of a store one at a time. Changes that arrive during a write become one next write. */
import type { StoreChange } from '../store/store.js'

interface Waiting {
  readonly changes: readonly StoreChange[]
  readonly onWritten: () => void
  readonly onRefused: (error: unknown) => void
}

/**
 * @param write writes all changes in order. It rejects when it has written no change
 * @returns a write function for concurrent callers. When a write with changes of several callers is refused, the changes of each caller are tried alone
 */
export function commitQueue(
  write: (changes: readonly StoreChange[]) => Promise<void>,
): (changes: readonly StoreChange[]) => Promise<void> {
  const waiting: Waiting[] = []
  let isWriting = false

  const writeTogether = async (all: readonly Waiting[]): Promise<void> => {
    try {
      await write(all.flatMap(({ changes }) => changes))
      for (const { onWritten } of all) onWritten()
    } catch (error) {
      if (all.length === 1) for (const { onRefused } of all) onRefused(error)
      else for (const each of all) await writeTogether([each])
    }
  }

  const run = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) await writeTogether(waiting.splice(0))
    isWriting = false
  }

  return (changes) =>
    new Promise((onWritten, onRefused) => {
      waiting.push({ changes, onWritten, onRefused })
      if (!isWriting) void run()
    })
}
