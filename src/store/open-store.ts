/** Opens a store before its first manager is created. A store on a server needs this, because it must connect first. */
import { InvalidInputError } from '../errors.js'
import type { Store, StoreContents } from './store.js'

/** A store that is already open. The first manager that uses it receives its content. */
export type OpenStore = Store

/** A store on a server. `openStore` opens it. */
export interface RemoteStore {
  /** The name of the store in errors. */
  readonly name: string
  /**
   * Connects, takes ownership of the store, and reads it.
   * @throws STORE_IN_USE while another process owns the store
   * @throws StoreError when the store cannot be reached or read; the store is left unchanged
   */
  connect(): Promise<OpenStore>
}

/**
 * Opens a store. A store on a server must be opened before a manager can use it. For other stores this is optional.
 * @returns the open store. A manager closes it; close it yourself if no manager uses it
 * @throws STORE_IN_USE while another process owns the store
 * @throws StoreError when the store cannot be reached or read; the store is left unchanged
 * @throws INVALID_INPUT for a value that is not a store
 */
export async function openStore(store: Store | RemoteStore): Promise<OpenStore> {
  if (isRemote(store)) return store.connect()
  if (typeof (store as Partial<Store> | undefined)?.open !== 'function') {
    throw new InvalidInputError('store', store, 'a store')
  }
  let contents: StoreContents | undefined = store.open()
  return {
    name: store.name,
    directory: store.directory,
    lost: store.lost,
    history: store.history,
    turns: store.turns,
    acceptance: store.acceptance,
    // Opening a store that is open already returns the same content.
    open: () => {
      const first = contents ?? store.open()
      contents = undefined
      return first
    },
    write: (changes, onDelay) => store.write(changes, onDelay),
    close: () => store.close(),
  }
}

const isRemote = (store: Store | RemoteStore): store is RemoteStore =>
  typeof (store as Partial<RemoteStore> | undefined)?.connect === 'function'
