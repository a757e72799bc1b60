/** A store may serve the async tasks and the command tasks of one process, each in its own tables. It is opened once, and closed by its last user. */
import { STORE_TABLES, type Store, type StoreContents, type StoreTable } from './store.js'
import { StoreInUseError } from './store-errors.js'

/** The tables of each user. */
const TABLES = {
  'async tasks': ['tasks', 'deliveries', 'featureStates'],
  'command tasks': ['commandTasks', 'commands', 'instances', 'featureStates'],
} as const satisfies Readonly<Record<string, readonly StoreTable[]>>

/** Both users have rows in it. */
const SHARED: StoreTable = 'featureStates'

/** The users of a store. */
export type StoreUser = keyof typeof TABLES

/** The rows of one user. */
export type ContentsOf<User extends StoreUser> = Pick<StoreContents, (typeof TABLES)[User][number]>

/** A store that is open for one of its users. */
export interface OpenedStore<User extends StoreUser> {
  /** The content that belongs to this user, as of the opening. */
  readonly contents: ContentsOf<User>
  /** Ends the use. The last user closes the store. */
  readonly close: () => void | Promise<void>
}

interface Opening {
  /** The rows of users that have not started yet. */
  readonly rows: Map<StoreTable, readonly unknown[]>
  /** The users since the store was opened. Its initial content is out of date for them. */
  readonly users: Set<StoreUser>
  count: number
}

const openings = new WeakMap<Store, Opening>()

/** @throws StoreInUseError while another user of this kind, or another process, uses the store; StoreError if it cannot be read */
export function useStore<User extends StoreUser>(store: Store, user: User): OpenedStore<User> {
  const opening = openings.get(store) ?? open(store)
  if (opening.users.has(user)) {
    // The store's own error names it.
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
