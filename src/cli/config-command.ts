/** `agent-tasks config check`: validates the configuration of the MCP server and of the task server without starting them. `config set` is beside it. */
import type { Command } from 'commander'
import { omitUndefined } from '../data/omit-undefined.js'
import { loadAgentConfig, parseConfigBytes, type LoadedConfig } from '../mcp/config-file.js'
import { readFoundFile } from '../mcp/found-file.js'
import type { Environment } from '../mcp/trust-records.js'
import { describeUntrusted } from '../mcp/trust.js'
import { unknownPlaceholders } from '../mcp/unknown-placeholders.js'
import { howToConfigure } from '../mcp/starter-config.js'
import { resolveServerConfig } from '../protocol/server-config.js'
import { readConfigFile } from '../server/config-file.js'
import { addConfigSet } from './config-set.js'
import { createTerminal, type ProgramIO } from './terminal.js'

export function addConfigCommand(program: Command, io: ProgramIO): void {
  const config = program.command('config').description('commands for the configuration')
  config
    .command('check')
    .description('validate agent-tasks.config.json and the settings of the task server')
    .argument('[file]', 'the configuration of the MCP server (default: agent-tasks.config.json, if it exists)')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The settings of the task server come from the environment and CONFIG_FILE. The first error is printed, and the exit code is 2.
It does not start the programs: doctor --start starts the instances.

Examples:
  $ agent-tasks config check
  $ PORT=many agent-tasks config check other.config.json`,
    )
    .action((file: string | undefined, { json }: { readonly json?: boolean }) => check(file, json === true, io))
  addConfigSet(config, io)
}

/** @throws INVALID_CONFIG or INVALID_SETTING for the first error */
function check(path: string | undefined, isJson: boolean, io: ProgramIO): void {
  const { env } = io
  const { config, file, path: configFile, untrusted } = readToCheck(path, env)
  const server = resolveServerConfig({ env, file: readConfigFile(env['CONFIG_FILE']) })
  const terminal = createTerminal(io, 'stdout')
  const subagents = config.subagents.map(({ name }) => name)
  const instances = config.instances.map(({ id }) => id)
  const { commands } = config
  const { host, port, tasks } = server
  if (isJson) {
    terminal.printJson({
      file: file ?? null,
      ...omitUndefined({ untrusted }),
      subagents,
      instances,
      ...omitUndefined({ commands }),
      server: { host, port, wsPort: tasks.wsPort },
    })
    return
  }
  const names = (list: readonly string[]): string => (list.length === 0 ? 'none' : list.join(', '))
  terminal.print(
    file === undefined && untrusted === undefined
      ? `There is no file ${configFile}: the defaults apply. ${howToConfigure(configFile)}`
      : `${configFile} ${file === undefined ? 'was not read' : 'is valid'}.`,
  )
  for (const note of unknownPlaceholders(config)) terminal.print(`Warning: ${note}`)
  if (untrusted !== undefined) terminal.printLines(describeUntrusted(untrusted))
  terminal.print(`Subagents: ${names(subagents)}. Instances: ${names(instances)}.`)
  if (commands !== undefined) {
    terminal.print(`Commands: ${commands.shell ? 'any, with /bin/sh' : names(commands.allow ?? [])}.`)
  }
  terminal.print(`The task server would listen on ${host}, ports ${port} and ${tasks.wsPort}.`)
}

/**
 * Reads a configuration file only to check it, also a file that the user has not trusted: nothing that it names is started.
 * @throws INVALID_CONFIG
 */
function readToCheck(path: string | undefined, env: Environment): LoadedConfig {
  const read = loadAgentConfig(path, process.cwd(), env)
  if (read.untrusted === undefined) return read
  const found = readFoundFile(read.path)
  if (found === undefined || 'problem' in found) return read
  return { ...read, config: parseConfigBytes(found.bytes, read.path), file: read.path }
}
