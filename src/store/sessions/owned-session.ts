/** A session in a store that has one owner at a time, such as a store on a server. It needs no files of its own. */
import type { OpenStore } from '../open-store.js'
import type { StoredTask } from '../store.js'
import { addToHistory, withoutOld } from './kept-tasks.js'
import type { SessionOfStore } from './session-store.js'

/**
 * Wraps the store of the only process of a session.
 * @param isKept as for `sessionStore`
 */
export function ownedSession(store: OpenStore, isKept: (task: StoredTask) => boolean): SessionOfStore {
  const earlierTasks = new Set<string>()
  const write: OpenStore['write'] = (changes, onDelay) => store.write(changes, onDelay)
  return {
    name: store.name,
    directory: store.directory,
    lost: store.lost,
    history: store.history,
    earlierTasks,
    // The store is open already.
    check: () => undefined,
    open: () => {
      const { kept, dropped } = withoutOld(store.open(), isKept)
      for (const { id } of kept.tasks) earlierTasks.add(id)
      // If this removal fails, the next process drops the same tasks.
      if (dropped.length > 0) write(dropped.map(({ id }) => ({ table: 'tasks', remove: id }))).catch(() => undefined)
      addToHistory(store.history, dropped)
      return kept
    },
    write,
    close: () => store.close(),
  }
}
