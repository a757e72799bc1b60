/** `agent-tasks mcp --init` and `--trust`: write the configuration of a folder, and record that the user trusts it. */
import { basename } from 'node:path'
import { parseConfigBytes } from '../mcp/config-file.js'
import { writeStarterConfig } from '../mcp/starter-config.js'
import { trustBytes, trustFile } from '../mcp/trust.js'
import { shownLocation } from '../store/locations/store-url.js'
import { CONFIG_FILE_NAME, type AgentConfig } from '../protocol/agent-config.js'
import { createTerminal, type ProgramIO } from './terminal.js'

/**
 * Writes the example configuration and records that the user trusts it.
 * @throws INVALID_CONFIG when the file exists or cannot be written
 */
export function initConfig(file: string, io: ProgramIO): void {
  const { bytes, mode } = writeStarterConfig(file)
  // Only a file with this name is found without `--config`, so only such a file needs to be trusted.
  const needsTrust = basename(file) === CONFIG_FILE_NAME
  const terminal = createTerminal(io, 'stdout')
  terminal.print(`Wrote ${file}. \`agent-tasks doctor\` checks it.`)
  if (!needsTrust) return
  trustBytes(file, bytes, mode, io.env)
  terminal.print('You have trusted it, so `agent-tasks mcp` uses it in this folder.')
  terminal.print('To let results wake your client, run `agent-tasks hooks --client NAME --write`.')
}

/**
 * Records that the user trusts a file with its present content, and prints what the file can start.
 * @throws INVALID_CONFIG when the file cannot be trusted
 */
export function trustConfig(file: string, io: ProgramIO): void {
  let config: AgentConfig | undefined
  const records = trustFile(file, io.env, (bytes) => (config = parseConfigBytes(bytes, file)))
  const { print } = createTerminal(io, 'stdout')
  print(`Trusted the present content of ${file}. Trust it again after each change.`)
  if (config !== undefined) for (const line of startable(config)) print(`  ${line}`)
  print('What these programs read, such as scripts of this folder, may change without asking again.')
  print(`Recorded in ${records.join(' and ')}.`)
}

/** One line for each program that the configuration starts, and for each server that it connects to. */
function startable({ subagents, instances, commands, workers, store }: AgentConfig): string[] {
  const line = (words: readonly string[]): string => words.map((word) => JSON.stringify(word)).join(' ')
  const variables = (env: object = {}): string => {
    const names = Object.keys(env)
    return names.length === 0 ? '' : `, with ${names.join(', ')}`
  }
  return [
    ...subagents.map(
      ({ name, command, args, env }) => `subagent ${name}: ${line([command, ...args])}${variables(env)}`,
    ),
    ...instances.map(({ id, command, args = [], env, url = '' }) =>
      command === undefined
        ? `instance ${id}: ${addressOf(url)}`
        : `instance ${id}: ${line([command, ...args])}${variables(env)}`,
    ),
    ...(commands === undefined
      ? []
      : [`commands: ${commands.shell ? 'any, with /bin/sh' : (commands.allow ?? []).join(', ')}`]),
    ...(workers.connection === undefined ? [] : ['workers: over the Redis that it names']),
    ...(store === undefined ? [] : [`store: ${shownLocation(store)}`]),
  ]
}

/** Returns a URL without its user, password and parameters, which may be secret. */
function addressOf(url: string): string {
  if (!URL.canParse(url)) return '(an invalid URL)'
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}
