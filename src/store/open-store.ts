/** Opens a store before its first manager is created, because a store on a server needs a connection first. */
import { InvalidInputError } from '../errors.js'
import type { Store, StoreContents } from './store.js'

/** An open store, which managers take. Its first user receives its content. */
export type OpenStore = Store

/** A store on a server. */
export interface RemoteStore {
  /** Its name in errors. */
  readonly name: string
  /**
   * Takes ownership of the store and reads it.
   * @throws StoreInUseError while another process owns it; StoreError if it cannot be reached or read, in which case it is left unchanged
   */
  connect(): Promise<OpenStore>
}

/**
 * Opens a store. A store on a server must be opened before a manager can use it; for other stores this is optional.
 * @returns the open store. Close it yourself if no manager uses it
 * @throws StoreInUseError while another process owns it; StoreError if it cannot be reached or read; InvalidInputError for a value that is not a store
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
    // Opening an open store again returns the same.
    open: () => {
      const first = contents ?? store.open()
      contents = undefined
      return first
    },
    write: (changes) => store.write(changes),
    close: () => store.close(),
  }
}

const isRemote = (store: Store | RemoteStore): store is RemoteStore =>
  typeof (store as Partial<RemoteStore> | undefined)?.connect === 'function'
