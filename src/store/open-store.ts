/** Opening a store before its first manager is created: a store on a server needs a connection for that. */
import { InvalidInputError } from '../errors.js'
import type { Store, StoreContents } from './store.js'

/** A store that is open: managers take it. Its first user gets what it held. */
export type OpenStore = Store

/** A store on a server. */
export interface RemoteStore {
  /** What errors call it. */
  readonly name: string
  /**
   * Takes possession of the store and reads it.
   * @throws StoreInUseError while another process owns it; StoreError if it cannot be reached or read. Nothing has changed then
   */
  connect(): Promise<OpenStore>
}

/**
 * Opens a store. A store on a server must be opened before a manager can use it; any other may be.
 * @returns the open store. Who gives it to no manager closes it
 * @throws StoreInUseError while another process owns it; StoreError if it cannot be reached or read; InvalidInputError for what is no store
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
    // Whoever asks again opens what is open.
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
