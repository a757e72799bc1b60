/** A session whose store has one owner at a time, and so needs no files: a store that was opened before. */
import type { OpenStore } from '../open-store.js'
import type { StoreChange, StoredTask } from '../store.js'
import { addToHistory, withoutOld } from './kept-tasks.js'
import type { SessionOfStore } from './session-store.js'

/**
 * The store of the only process of a session.
 * @param isKept as for `sessionStore`
 */
export function ownedSession(store: OpenStore, isKept: (task: StoredTask) => boolean): SessionOfStore {
  const earlierTasks = new Set<string>()
  let isSealed = false
  const write = async (changes: readonly StoreChange[]): Promise<void> => {
    if (!isSealed) await store.write(changes)
  }
  return {
    name: store.name,
    directory: store.directory,
    lost: store.lost,
    history: store.history,
    earlierTasks,
    open: () => {
      const { kept, dropped } = withoutOld(store.open(), isKept)
      for (const { id } of kept.tasks) earlierTasks.add(id)
      // What cannot be removed now is dropped by the next process.
      if (dropped.length > 0) write(dropped.map(({ id }) => ({ table: 'tasks', remove: id }))).catch(() => undefined)
      addToHistory(store.history, dropped)
      return kept
    },
    write,
    seal: () => {
      isSealed = true
    },
    close: () => store.close(),
  }
}
