/** `agent-tasks config check`: whether the configuration of the MCP server and of the task server can be used, before either is started. */
import type { Command } from 'commander'
import { loadAgentConfig } from '../mcp/config-file.js'
import { resolveServerConfig } from '../protocol/server-config.js'
import { readConfigFile } from '../server/config-file.js'
import { createTerminal, type Surroundings } from './terminal.js'

export function addConfigCommand(program: Command, surroundings: Surroundings): void {
  const config = program.command('config').description('look at the configuration')
  config
    .command('check')
    .description('check agent-tasks.config.json, and the settings of the task server')
    .argument('[file]', 'the configuration of the MCP server (default: agent-tasks.config.json, if it is there)')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The settings of the task server are those of the environment and of CONFIG_FILE. The first thing that is wrong is told, and the
exit code is 2 then. Whether the programs start is what doctor looks at.

Examples:
  $ agent-tasks config check
  $ PORT=many agent-tasks config check other.config.json`,
    )
    .action((file: string | undefined, { json }: { readonly json?: boolean }) =>
      check(file, json === true, surroundings),
    )
}

/** @throws ConfigFileError, InvalidSettingError about the first thing that is wrong */
function check(path: string | undefined, isJson: boolean, surroundings: Surroundings): void {
  const { env } = surroundings
  const { config, file } = loadAgentConfig(path)
  const server = resolveServerConfig({ env, file: readConfigFile(env['CONFIG_FILE']) })
  const terminal = createTerminal(surroundings, 'stdout')
  const subagents = config.subagents.map(({ name }) => name)
  const instances = config.instances.map(({ id }) => id)
  const { host, port, tasks } = server
  if (isJson) {
    terminal.printJson({ file: file ?? null, subagents, instances, server: { host, port, wsPort: tasks.wsPort } })
    return
  }
  const names = (list: readonly string[]): string => (list.length === 0 ? 'none' : list.join(', '))
  terminal.print(
    file === undefined ? 'No agent-tasks.config.json here: everything is at its default.' : `${file} can be used.`,
  )
  terminal.print(`Subagents: ${names(subagents)}. Instances: ${names(instances)}.`)
  terminal.print(`The task server would listen at ${host}, ports ${port} and ${tasks.wsPort}.`)
}
