/** `agent-tasks instances`: the instances of a server and their tools. */
import type { Command } from 'commander'
import { addClientOptions, withClient, type ClientOptions } from './client-options.js'
import { formatTable, oneLine } from './table.js'
import { createTerminal, type ProgramIO } from './terminal.js'

export function addInstancesCommand(program: Command, io: ProgramIO): void {
  addClientOptions(program.command('instances').description('list the instances of a server'))
    .addHelpText('after', '\nExamples:\n  $ agent-tasks instances\n  $ agent-tasks instances --json | jq .tools')
    .action((options: ClientOptions) => listInstances(options, io))
}

async function listInstances(options: ClientOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const instances = await withClient(options, io, (client) => client.instances())
  if (options.json === true) {
    instances.forEach(terminal.printJson)
    return
  }
  if (instances.length === 0) {
    terminal.say('No instance is connected. Start the server with --instance name="command args".')
    return
  }
  const rows = instances.map(({ id, kind, isConnected, queued, tools }) => [
    id,
    kind,
    isConnected ? 'yes' : 'no',
    String(queued),
    tools === undefined ? '' : oneLine(tools.map(({ name }) => name).join(', '), 100),
  ])
  formatTable(['ID', 'KIND', 'CONNECTED', 'QUEUED', 'TOOLS'], rows).forEach(terminal.print)
}
