/** `agent-tasks mcp --init` and `--trust`: write the configuration of a folder, and record that the user trusts it. */
import { basename } from 'node:path'
import { parseConfigBytes } from '../mcp/config-file.js'
import { writeStarterConfig } from '../mcp/starter-config.js'
import { trustBytes, trustFile } from '../mcp/trust.js'
import { CONFIG_FILE_NAME, type AgentConfig } from '../protocol/agent-config.js'
import { createTerminal, type ProgramIO } from './terminal.js'

/** Writes an example, and trusts it. @throws ConfigFileError */
export function initConfig(file: string, io: ProgramIO): void {
  const { bytes, mode } = writeStarterConfig(file)
  // Only a file with this name is used without `--config`, so only it needs trust.
  const needsTrust = basename(file) === CONFIG_FILE_NAME
  const terminal = createTerminal(io, 'stdout')
  terminal.print(`Wrote ${file}. \`agent-tasks doctor\` checks it.`)
  if (!needsTrust) return
  trustBytes(file, bytes, mode, io.env)
  terminal.print('You have trusted it, so `agent-tasks mcp` uses it in this folder.')
}

/** Trusts the present content of a file, and prints what it can start. @throws ConfigFileError */
export function trustConfig(file: string, io: ProgramIO): void {
  let config: AgentConfig | undefined
  const records = trustFile(file, io.env, (bytes) => (config = parseConfigBytes(bytes, file)))
  const { print } = createTerminal(io, 'stdout')
  print(`Trusted the present content of ${file}. Trust it again after each change.`)
  if (config !== undefined) for (const line of startable(config)) print(`  ${line}`)
  print('What these programs read, such as scripts of this folder, may change without asking again.')
  print(`Recorded in ${records.join(' and ')}.`)
}

/** One line for each program that a configuration starts, and for each server that it connects to. */
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
      command === undefined ? `instance ${id}: ${url}` : `instance ${id}: ${line([command, ...args])}${variables(env)}`,
    ),
    ...(commands === undefined
      ? []
      : [`commands: ${commands.shell ? 'any, with /bin/sh' : (commands.allow ?? []).join(', ')}`]),
    ...(workers.connection === undefined ? [] : ['workers: over the Redis that it names']),
    ...(store === undefined ? [] : [`store: ${store}`]),
  ]
}
