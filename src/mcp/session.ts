/** Creates the store of an MCP server, in a folder for its session, and decides which tasks of an earlier process are kept. */
import { resolve } from 'node:path'
import type { Clock } from '../system/clock.js'
import { InvalidSettingError } from '../errors.js'
import { storeUrlAt } from '../store/locations/store-url.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import { sessionFolder } from '../store/sessions/session-folder.js'
import { sessionStore, type SessionOfStore, type SessionStore } from '../store/sessions/session-store.js'
import { ownedSession } from '../store/sessions/owned-session.js'
import type { OpenStore } from '../store/open-store.js'
import type { StoredTask } from '../store/store.js'
import { ANONYMOUS } from './callers.js'

export interface SessionOptions {
  /** A folder, or an open store. */
  readonly store?: string | OpenStore | undefined
  readonly session?: string | undefined
  /** The folder that the paths of the configuration start from. */
  readonly folder: string
  /** The default of `session`. */
  readonly projectFolder: string
  /** Returns the key of the client's conversation, which is used in place of `projectFolder` if it is known when the store is opened. */
  readonly conversationKey?: () => string | undefined
}

/** Where a session is stored: in a folder, or at a URL. */
export type SessionPlace =
  { readonly folder: string; readonly key: string } | { readonly url: string; readonly key: string }

/** Returns where a server's session is stored, and its key; undefined without a store. */
export function sessionPlace(
  config: AgentConfig,
  options: SessionOptions & { readonly store?: string | undefined },
): SessionPlace | undefined {
  const location = options.store ?? config.store
  if (location === undefined) return undefined
  const key = options.session ?? config.session ?? resolve(options.projectFolder)
  const url = storeUrlAt(location, 'store', key)
  if (url !== undefined) return { url: location, key: url.options.session ?? key }
  return { folder: options.store === undefined ? resolve(options.folder, location) : resolve(location), key }
}

/**
 * Creates the store of a server without opening it. Returns undefined if no store is configured.
 * @throws INVALID_SETTING for a setting that needs a store, or another kind of store
 */
export function createSession(config: AgentConfig, options: SessionOptions, clock: Clock): SessionOfStore | undefined {
  const isKept = (task: StoredTask): boolean => isStillKept(task, clock.now() - config.tasks.retentionMs)
  const { store, ...others } = options
  if (typeof store === 'object') {
    if (store.directory === undefined) {
      refuseSurviving(config, 'false, because this store has no folder for the files of programs')
    }
    return ownedSession(store, isKept)
  }
  const place = sessionPlace(config, { ...others, store })
  if (place !== undefined) {
    if ('url' in place) {
      const expected = 'a folder; open a store on a server first: { store: await openStore(postgresStore({ … })) }'
      throw new InvalidSettingError('store', '(a URL)', expected)
    }
    const { folder, key } = place
    const hasKey = (options.session ?? config.session) !== undefined
    return laterSession(() =>
      sessionStore(sessionFolder(folder, (hasKey ? undefined : options.conversationKey?.()) ?? key), isKept),
    )
  }
  const expected = 'no value without a store; set --store, or store in the configuration'
  refuseSurviving(config, expected)
  const session = options.session ?? config.session
  if (session !== undefined) throw new InvalidSettingError('session', session, expected)
  return undefined
}

/** A session whose key is known only when it is opened. */
function laterSession(make: () => SessionStore): SessionOfStore {
  let made: SessionStore | undefined
  const session = (): SessionStore => (made ??= make())
  return {
    get name() {
      return session().name
    },
    get directory() {
      return session().directory
    },
    get history() {
      return session().history
    },
    get earlierTasks() {
      return session().earlierTasks
    },
    check: () => make().check(),
    open: () => session().open(),
    write: (changes, onDelay) => session().write(changes, onDelay),
    close: () => made?.close(),
  }
}

/** @throws INVALID_SETTING if a subagent has `survivesHost` */
function refuseSurviving({ subagents }: AgentConfig, expected: string): void {
  const at = subagents.findIndex(({ survivesHost }) => survivesHost)
  if (at !== -1) throw new InvalidSettingError(`subagents[${at}].survivesHost`, true, expected)
}

/**
 * Keeps a task whose result is undelivered, and for a while (`tasks.retentionMs`) every ended task, because its result may be requested. No answer
 * carries undelivered results to an anonymous client, so their tasks are kept only for requests.
 */
function isStillKept({ owner, delivery, completedAt = 0 }: StoredTask, since: number): boolean {
  return (delivery !== 'none' && delivery !== 'delivered' && owner !== ANONYMOUS.owner) || completedAt > since
}
