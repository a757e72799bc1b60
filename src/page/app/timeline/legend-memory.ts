/** Remembers in the browser's storage that a person has closed the legend. */

const KEPT_AS = 'agent-tasks-legend'

export interface LegendMemory {
  wasClosed(): boolean
  keepClosed(): void
}

interface TextStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
}

/** @param storageOf returns the storage. It may throw, because a browser can forbid the use of storage */
export function legendMemory(storageOf: () => TextStorage): LegendMemory {
  return {
    wasClosed: () => {
      try {
        return storageOf().getItem(KEPT_AS) === 'closed'
      } catch {
        return false
      }
    },
    keepClosed: () => {
      try {
        storageOf().setItem(KEPT_AS, 'closed')
      } catch {
        // The legend is then open again on the next visit.
      }
    },
  }
}
