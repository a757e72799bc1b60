/** The store of an MCP server: which folder, whose session, and what is taken over of it. */
import { resolve } from 'node:path'
import type { Clock } from '../clock.js'
import { InvalidSettingError } from '../errors.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import { sessionFolder } from '../store/sessions/session-folder.js'
import { sessionStore, type SessionStore } from '../store/sessions/session-store.js'
import type { StoredTask } from '../store/store.js'
import { ANONYMOUS } from './callers.js'

/** What a server is told of its store, besides the configuration. */
export interface SessionOptions {
  readonly store?: string | undefined
  readonly session?: string | undefined
  /** The folder that the paths of the configuration start from. */
  readonly folder: string
  /** The default of `session`. */
  readonly projectFolder: string
}

/** Where a session is stored. */
export interface SessionPlace {
  readonly folder: string
  readonly key: string
}

/** The folder and the key of a server's session; undefined without a store. */
export function sessionPlace(config: AgentConfig, options: SessionOptions): SessionPlace | undefined {
  const folder =
    options.store === undefined
      ? config.store !== undefined && resolve(options.folder, config.store)
      : resolve(options.store)
  if (folder === false) return undefined
  return { folder, key: options.session ?? config.session ?? resolve(options.projectFolder) }
}

/**
 * The store of a server; undefined when none is configured. Nothing is opened.
 * @throws InvalidSettingError for a setting that needs a store
 */
export function createSession(config: AgentConfig, options: SessionOptions, clock: Clock): SessionStore | undefined {
  const place = sessionPlace(config, options)
  if (place !== undefined) {
    const isKept = (task: StoredTask): boolean => isStillKept(task, clock.now() - config.tasks.retentionMs)
    return sessionStore(sessionFolder(place.folder, place.key), isKept)
  }
  const expected = 'nothing unless there is a store (--store, or store of the configuration)'
  const surviving = config.subagents.findIndex(({ survivesHost }) => survivesHost)
  if (surviving !== -1) throw new InvalidSettingError(`subagents[${surviving}].survivesHost`, true, expected)
  const session = options.session ?? config.session
  if (session !== undefined) throw new InvalidSettingError('session', session, expected)
  return undefined
}

/** What is owed is kept, and for a while what can be asked for. Nobody is told of the results of anonymous clients. */
function isStillKept({ owner, delivery, completedAt = 0 }: StoredTask, since: number): boolean {
  return (delivery !== 'none' && delivery !== 'delivered' && owner !== ANONYMOUS.owner) || completedAt > since
}
