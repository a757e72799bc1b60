/**
 * One store may serve the async tasks and the command tasks of a process, which use different tables. The first of the two opens the store, and the
 * last one closes it.
 */
import { STORE_TABLES, type Store, type StoreContents, type StoreTable } from './store.js'
import { StoreInUseError } from './store-errors.js'

/** The tables that each user of a store reads and writes. */
const TABLES = {
  'async tasks': ['tasks', 'deliveries', 'featureStates'],
  'command tasks': ['commandTasks', 'commands', 'instances', 'featureStates'],
} as const satisfies Readonly<Record<string, readonly StoreTable[]>>

/** The only table that both users write. */
const SHARED: StoreTable = 'featureStates'

/** A user of a store: the async tasks or the command tasks. */
export type StoreUser = keyof typeof TABLES

export type ContentsOf<User extends StoreUser> = Pick<StoreContents, (typeof TABLES)[User][number]>

/** A store that is open for one of its users. */
export interface OpenedStore<User extends StoreUser> {
  readonly contents: ContentsOf<User>
  /** Ends the use. When the last user calls it, the store is closed. */
  readonly close: () => void | Promise<void>
}

interface Opening {
  /** The rows of users that have not started yet. */
  readonly rows: Map<StoreTable, readonly unknown[]>
  /** The users that the store has had since it was opened. For them its initial content is out of date. */
  readonly users: Set<StoreUser>
  count: number
}

const openings = new WeakMap<Store, Opening>()

/**
 * Opens the store for a user, or joins the user that has opened it.
 * @throws STORE_IN_USE while another user of the same kind, or another process, uses the store
 * @throws StoreError when the store cannot be read
 */
export function useStore<User extends StoreUser>(store: Store, user: User): OpenedStore<User> {
  const opening = openings.get(store) ?? open(store)
  if (opening.users.has(user)) {
    // This call throws the error of the store itself, which names the store.
    store.open()
    throw new StoreInUseError('The store', undefined)
  }
  opening.users.add(user)
  opening.count += 1
  const contents = TABLES[user].map((table) => [table, opening.rows.get(table)])
  for (const table of TABLES[user]) if (table !== SHARED) opening.rows.delete(table)
  let isOpen = true
  return {
    contents: Object.fromEntries(contents) as ContentsOf<User>,
    close: () => {
      if (!isOpen) return undefined
      isOpen = false
      opening.count -= 1
      if (opening.count > 0) return undefined
      openings.delete(store)
      return store.close()
    },
  }
}

function open(store: Store): Opening {
  const contents = store.open()
  const rows = new Map(STORE_TABLES.map((table) => [table, contents[table]]))
  const opening: Opening = { rows, users: new Set(), count: 0 }
  openings.set(store, opening)
  return opening
}
