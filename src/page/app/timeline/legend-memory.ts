/** Remembers in this browser that a person has closed the legend. */

const KEPT_AS = 'agent-tasks-legend'

export interface LegendMemory {
  wasClosed(): boolean
  keepClosed(): void
}

interface TextStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
}

/** @param storageOf may throw, because a browser can forbid storage */
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
        // The legend will be open again in the next visit.
      }
    },
  }
}
