/** `agent-tasks tasks list`, `agent-tasks task end <id>` and `agent-tasks instances`. */
import type { Command } from 'commander'
import { defined } from '../defined.js'
import { InvalidInputError } from '../errors.js'
import { taskStatusFilterSchema } from '../protocol/command-tasks.js'
import { addClientOptions, withClient, type ClientOptions } from './client-options.js'
import { EXIT } from './exit-codes.js'
import { CommandEnd } from './failures.js'
import { addHistoryCommand } from './history-command.js'
import { readInteger } from './numbers.js'
import { formatTable, oneLine } from './table.js'
import { findTaskId, listTasks, taskRows } from './task-list.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface ListOptions extends ClientOptions {
  readonly instance?: string
  readonly status?: string
  readonly limit: string
}

const STATUSES = taskStatusFilterSchema.options.join(', ')

export function addTasksCommands(program: Command, io: ProgramIO): void {
  const tasks = program.command('tasks').description('commands for all tasks of a server, or of a store')
  addClientOptions(tasks.command('list').description('list tasks, newest first'))
    .option('--instance <id>', 'only tasks of this instance')
    .option('--status <status>', `only tasks with this status: ${STATUSES}`)
    .option('--limit <count>', 'the most tasks to list', '100')
    .addHelpText(
      'after',
      '\nExamples:\n  $ agent-tasks tasks list --status running\n  $ agent-tasks tasks list --json | jq -r .id',
    )
    .action((options: ListOptions) => list(options, io))

  addHistoryCommand(tasks, io)

  const task = program.command('task').description('commands for one task')
  addClientOptions(
    task
      .command('end')
      .alias('cancel')
      .description('cancel a task')
      .argument('<id>', 'the id, or a unique prefix of it'),
  )
    .addHelpText(
      'after',
      '\nExit code: 0 cancelled, 4 no such task or several, 5 it had ended.\n\nExamples:\n  $ agent-tasks task end task_1795307098820_1',
    )
    .action((id: string, options: ClientOptions) => end(id, options, io))

  addClientOptions(program.command('instances').description('list the instances of a server'))
    .addHelpText('after', '\nExamples:\n  $ agent-tasks instances\n  $ agent-tasks instances --json | jq .tools')
    .action((options: ClientOptions) => listInstances(options, io))
}

async function list(options: ListOptions, io: ProgramIO): Promise<void> {
  const { instance, json } = options
  const limit = readInteger('--limit', options.limit, 1, 100_000)
  const status = options.status === undefined ? undefined : taskStatusFilterSchema.safeParse(options.status)
  if (status?.success === false) throw new InvalidInputError('--status', options.status, `one of ${STATUSES}`)
  const filter = {
    ...defined({ instanceId: instance }),
    ...(status !== undefined && { status: status.data }),
  }
  const terminal = createTerminal(io, 'stdout')
  const tasks = await withClient(options, io, (client) => listTasks(client, limit, filter))
  if (json === true) tasks.forEach(terminal.printJson)
  else if (tasks.length === 0) {
    terminal.say(Object.keys(filter).length === 0 ? 'The server has no tasks.' : 'The server has no task that matches.')
  } else taskRows(tasks).forEach(terminal.print)
}

async function end(idOrPrefix: string, options: ClientOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const [id, wasCancelled] = await withClient(options, io, async (client) => {
    const found = await findTaskId(client, idOrPrefix, ({ status }) => status === 'queued' || status === 'running')
    return [found, await client.cancel(found)] as const
  })
  if (options.json === true) terminal.printJson({ taskId: id, cancelled: wasCancelled })
  else terminal.print(wasCancelled ? `${id} was cancelled.` : `${id} had already ended.`)
  if (!wasCancelled) throw new CommandEnd(EXIT.taskCancelled)
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
