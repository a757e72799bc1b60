/** How the hooks of a client are configured. */
import { CLIENT_NAMES, HOOK_EVENTS } from './hook-client.js'

export type HookScope = 'project' | 'user'

/** Where the configuration of a client is. */
export interface SetupPlace {
  readonly scope: HookScope
  /** The folder of the project. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What the entries call. */
export interface HookTarget {
  /** The name of the MCP server in the configuration of the client. */
  readonly server: string
  /** The program and arguments that run `agent-tasks`. */
  readonly command: readonly string[]
  /** Whether to wake the client with its own command while it is idle, if it needs one for that. Default false. */
  readonly wakesIdle?: boolean | undefined
}

/** An element of a list in a file of settings. `path` leads to the list. */
export interface HookEntry {
  readonly path: readonly string[]
  readonly value: object
}

interface CommonSetup {
  /** The file of the entries; undefined if its folder is unknown. */
  readonly file: (place: SetupPlace) => string | undefined
  /** Whether the file of a project is one that people commit. It is printed then, and never written. */
  readonly isCommitted: boolean
  /** The files in which the client may name its MCP servers. */
  readonly serverFiles: (place: SetupPlace) => readonly string[]
  /** What the user has to do so that the client runs the hooks, as sentences. */
  readonly trust: string
}

/** A file of the client, which also has entries of others. */
export interface SharedSetup extends CommonSetup {
  readonly entries: (target: HookTarget) => readonly HookEntry[]
}

/** A file of its own. */
export interface OwnSetup extends CommonSetup {
  readonly text: (target: HookTarget) => string
  /** Whether this is the text of such a file. */
  readonly isOwn: (text: string) => boolean
}

export type HookSetup = SharedSetup | OwnSetup

/** Returns the path of a file in HOME; undefined if HOME is not set. */
export const inHome = ({ env: { HOME } }: SetupPlace, path: string): string | undefined =>
  HOME === undefined || HOME === '' ? undefined : `${HOME}/${path}`

export const defined = <Value>(...values: readonly (Value | undefined)[]): Value[] =>
  values.filter((value) => value !== undefined)

/** The command line of a hook, for a shell. */
export const hookCommand = ({ command }: HookTarget, event: string, client: string): string =>
  [...command.map(shellWord), 'hook', event, '--client', client].join(' ')

const shellWord = (word: string): string =>
  /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

const HOOK_COMMAND = new RegExp(`\\shook (${HOOK_EVENTS.join('|')}) --client (${CLIENT_NAMES.join('|')})$`)

const HOOK_TOOL = /^agent_tasks_(stop|prompt)$/

/** Whether an element of a list of hooks is an entry of this package. */
export function isOwnEntry(value: unknown): boolean {
  const { hooks } = Object(value) as { readonly hooks?: unknown }
  return Array.isArray(hooks) && hooks.length > 0 && hooks.every(isOwnHook)
}

function isOwnHook(value: unknown): boolean {
  const { command, tool } = Object(value) as { readonly command?: unknown; readonly tool?: unknown }
  return (
    (typeof command === 'string' && HOOK_COMMAND.test(command)) || (typeof tool === 'string' && HOOK_TOOL.test(tool))
  )
}
