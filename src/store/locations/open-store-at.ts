/** Opens a store that a setting or an argument names. */
import { sqliteStore } from '../sqlite/sqlite-store.js'
import type { Store } from '../store.js'
import { storeUrlAt } from './store-url.js'

/**
 * Opens the store at a location as its owner: at a URL, or in a file. A file is opened by its first user.
 * @param setting the name of the setting in errors
 * @param session the session if a URL names none
 * @throws StoreError when the store cannot be opened
 * @throws INVALID_SETTING for an invalid URL
 */
export async function openStoreAt(location: string, setting: string, session?: string): Promise<Store> {
  return storeUrlAt(location, setting, session)?.open() ?? sqliteStore(location)
}
