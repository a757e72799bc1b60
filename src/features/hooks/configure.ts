/** Prints, writes, removes and checks the hooks in the configuration of a client. */
import { existsSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { AgentTasksError, InvalidSettingError } from '../../errors.js'
import { isWithin } from '../../system/regular-file.js'
import { HOOK_SETUPS } from './clients.js'
import type { ClientName } from './hook-client.js'
import type { HookEntry, HookTarget, SetupPlace } from './hook-setup.js'
import { changeFile, ownEntries, readSettings, withEntries, withoutEntries } from './settings-file.js'

export interface HookPlan extends SetupPlace {
  readonly client: ClientName
  readonly target: HookTarget
}

const fileOf = ({ client, ...place }: HookPlan): string => {
  const file = HOOK_SETUPS[client].file(place)
  if (file !== undefined) return file
  throw new InvalidSettingError('HOME', place.env['HOME'], 'a folder, in which the configuration of the client is')
}

/** Returns the file of the hooks, and what belongs into it. */
export function printHooks(plan: HookPlan): { readonly file: string; readonly text: string } {
  const setup = HOOK_SETUPS[plan.client]
  const file = fileOf(plan)
  if ('text' in setup) return { file, text: setup.text(plan.target) }
  return { file, text: `${JSON.stringify(asSettings(setup.entries(plan.target)), null, 2)}\n` }
}

const asSettings = (entries: readonly HookEntry[]): object => ({
  hooks: Object.fromEntries(entries.map(({ path, value }) => [path.at(-1) ?? '', [value]] as const)),
})

/**
 * Writes the hooks.
 * @returns the file, and whether it has changed
 * @throws INVALID_SETTING for a file that people commit
 * @throws INVALID_CONFIG for a file that cannot be changed safely, such as one outside the folder of a project
 */
export function writeHooks(plan: HookPlan): { readonly file: string; readonly hasChanged: boolean } {
  const setup = HOOK_SETUPS[plan.client]
  const file = fileOf(plan)
  refuseCommitted(plan)
  refuseOutside(plan, file)
  const hasChanged = changeFile(file, (text) => {
    if (!('text' in setup)) return withEntries(file, text, setup.entries(plan.target))
    refuseForeign(file, text, setup.isOwn)
    return setup.text(plan.target)
  })
  return { file, hasChanged }
}

/**
 * Removes exactly the hooks of this package.
 * @throws the errors of `writeHooks`
 */
export function removeHooks(plan: HookPlan): { readonly file: string; readonly hasChanged: boolean } {
  const setup = HOOK_SETUPS[plan.client]
  const file = fileOf(plan)
  refuseCommitted(plan)
  refuseOutside(plan, file)
  const hasChanged = changeFile(file, (text) => {
    if (text === undefined) return undefined
    if (!('text' in setup)) return withoutEntries(file, text)
    refuseForeign(file, text, setup.isOwn)
    return undefined
  })
  return { file, hasChanged }
}

/** Returns what is missing or different, as sentences; none if the hooks are as `writeHooks` writes them. */
export function checkHooks(plan: HookPlan): readonly string[] {
  const setup = HOOK_SETUPS[plan.client]
  const file = fileOf(plan)
  const text = readSettings(file)
  if (text === undefined) return [`${file} does not exist.`]
  if ('text' in setup) return text === setup.text(plan.target) ? [] : [`${file} is not as this version writes it.`]
  const present = ownEntries(file, text)
  const { wakesIdle = false } = plan.target
  // Both are right, as the user has chosen.
  const [missing = [], others = []] = [wakesIdle, !wakesIdle].map((isWoken) =>
    setup
      .entries({ ...plan.target, wakesIdle: isWoken })
      .filter((entry) => !present.some((one) => isDeepStrictEqual(one, entry))),
  )
  if (others.length === 0) return []
  return missing.map(({ path }) => `${file}: ${path.join('.')} has no entry as this version writes it.`)
}

/** The name under which the configuration of a client has this MCP server; undefined if it has none. */
export function findServerName(client: ClientName, place: SetupPlace): string | undefined {
  for (const file of HOOK_SETUPS[client].serverFiles(place)) {
    const text = readSettings(file)
    const name = text === undefined ? undefined : file.endsWith('.toml') ? nameInToml(text) : nameInJson(text, place)
    if (name !== undefined) return name
  }
  return undefined
}

function nameInJson(text: string, { folder }: SetupPlace): string | undefined {
  const parsed: unknown = tryJson(text)
  const { mcpServers, mcp, projects } = Object(parsed) as Readonly<Record<string, Readonly<Record<string, unknown>>>>
  const ofProject = (Object(projects?.[folder]) as { readonly mcpServers?: object }).mcpServers
  const servers = [ofProject, mcpServers, mcp].flatMap((one) => Object.entries(Object(one) as object))
  return servers.find(([, server]) => isServer(JSON.stringify(server)))?.[0]
}

/** Reads the names of tables such as `[mcp_servers.name]`, and looks at what follows each. */
function nameInToml(text: string): string | undefined {
  const tables = text.split(/^[ \t]*\[mcp_servers\./m).slice(1)
  const found = tables.find((table) => isServer(table.split(/^[ \t]*\[/m)[0] ?? ''))
  return /^"?([^\]"]+)"?\]/.exec(found ?? '')?.[1]
}

/** Whether the entry of an MCP server runs this package. */
const isServer = (entry: string): boolean => /agent-tasks|cli\/main\.js/.test(entry) && /mcp/.test(entry)

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refuseCommitted({ client, scope }: HookPlan): void {
  if (scope === 'user' || !HOOK_SETUPS[client].isCommitted) return
  const expected = 'user, because the file of a project is one that people commit; --print shows what belongs into it'
  throw new InvalidSettingError('--scope', scope, expected)
}

/** A repository may have a link in the place of the file or its folder, which would lead to any file of the user. */
function refuseOutside({ scope, folder }: HookPlan, file: string): void {
  const place = [file, dirname(file)].find((each) => existsSync(each))
  if (scope === 'user' || place === undefined || isWithin(realpathSync(folder), realpathSync(place))) return
  throw new AgentTasksError('INVALID_CONFIG', `${file} is a link out of the folder. Nothing was changed.`)
}

function refuseForeign(file: string, text: string | undefined, isOwn: (text: string) => boolean): void {
  if (text === undefined || isOwn(text)) return
  throw new AgentTasksError('INVALID_CONFIG', `${file} is not from agent-tasks. Nothing was changed.`)
}

export const planOf = (
  plan: Omit<HookPlan, 'target'> & Pick<HookTarget, 'command' | 'wakesIdle'> & { readonly server?: string | undefined },
): HookPlan => {
  const { command, server, wakesIdle, ...place } = plan
  const name = server ?? findServerName(plan.client, place) ?? 'agent-tasks'
  return { ...place, target: { command, server: name, wakesIdle } }
}
