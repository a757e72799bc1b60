/** Reads URLs of stores, from the command line and from configuration files. */
import { InvalidSettingError } from '../../errors.js'
import type { PastTask, PastTaskQuery } from '../history/task-history.js'
import { openStore, type OpenStore } from '../open-store.js'
import { readRemoteHistory, readRemoteStore, type RemoteSession } from '../remote/read-remote-store.js'
import { remoteStore } from '../remote/remote-store.js'
import { STORE_KINDS, type StoreKind, type StoreUrlOptions } from './store-kinds.js'

export interface StoreUrl {
  readonly kind: StoreKind
  readonly options: StoreUrlOptions
  /** Opens the session as its owner. */
  open(): Promise<OpenStore>
  /** Reads the session, or all sessions if the URL names none. */
  read(): Promise<readonly RemoteSession[]>
  readHistory(query: PastTaskQuery): Promise<readonly PastTask[]>
}

/** The URLs of stores, for the help of commands. */
export const STORE_URLS = STORE_KINDS.map(({ schemes }) => `${schemes[0]}://…`).join(' or ')

export const STORE_NAMES = STORE_KINDS.map(({ name }) => name).join(' or ')

const kindOf = (location: string): StoreKind | undefined =>
  STORE_KINDS.find(({ schemes }) => schemes.some((scheme) => location.toLowerCase().startsWith(`${scheme}://`)))

/**
 * Parses the URL of a store. It may have the parameters of its client, and `schema` and `session`.
 * @param setting the name of the setting in errors. Errors never show the URL, because it may contain a password
 * @param session the session if the URL names none
 * @returns undefined for a path
 * @throws INVALID_SETTING for a text with the scheme of a store that is not a URL
 */
export function storeUrlAt(location: string, setting: string, session?: string): StoreUrl | undefined {
  const kind = kindOf(location)
  if (kind === undefined) return undefined
  if (!URL.canParse(location)) {
    throw new InvalidSettingError(setting, '(a URL)', `${kind.schemes[0]}://${kind.address}`)
  }
  const url = new URL(location)
  const take = (name: string): string | undefined => {
    const value = url.searchParams.get(name)
    url.searchParams.delete(name)
    return value ?? undefined
  }
  const [schema, named = session] = [take('schema'), take('session')]
  const options = {
    connection: url.href,
    ...(schema !== undefined && { schema }),
    ...(named !== undefined && { session: named }),
  }
  const access = () => kind.database(options)
  return {
    kind,
    options,
    open: async () => openStore(remoteStore(options, access)),
    read: async () => readRemoteStore(access(), named),
    readHistory: async (query) => readRemoteHistory(access(), query, named),
  }
}

/** Returns a location for messages: a URL without its user, password and parameters, which may be secret and must not be printed. */
export function shownLocation(location: string): string {
  const kind = kindOf(location)
  if (kind === undefined) return location
  if (!URL.canParse(location)) return `${kind.schemes[0]}://…`
  const { host, pathname } = new URL(location)
  return `${kind.schemes[0]}://${host}${pathname}`
}
