/** `agent-tasks tasks list`, `agent-tasks task end <id>` and `agent-tasks instances`. */
import type { Command } from 'commander'
import { TaskServerError } from '../client/client-errors.js'
import type { TaskClient } from '../client/task-client.js'
import { InvalidInputError } from '../errors.js'
import { taskStatusSchema, type TaskSummary } from '../protocol/command-tasks.js'
import { addClientOptions, withClient, type ClientOptions } from './client-options.js'
import { CommandEnd } from './failures.js'
import { EXIT } from './exit-codes.js'
import { readInteger } from './numbers.js'
import { formatAge, formatTable, oneLine } from './table.js'
import { createTerminal, type Surroundings } from './terminal.js'

interface ListOptions extends ClientOptions {
  readonly instance?: string
  readonly status?: string
  readonly limit: string
}

export function addTasksCommands(program: Command, surroundings: Surroundings): void {
  const tasks = program.command('tasks').description('look at the tasks of a server')
  addClientOptions(tasks.command('list').description('list tasks, newest first'))
    .option('--instance <id>', 'only those of this instance')
    .option('--status <status>', `only those that are ${taskStatusSchema.options.join(', ')}`)
    .option('--limit <count>', 'the most to list', '100')
    .addHelpText(
      'after',
      '\nExamples:\n  $ agent-tasks tasks list --status running\n  $ agent-tasks tasks list --json | jq -r .id',
    )
    .action((options: ListOptions) => list(options, surroundings))

  const task = program.command('task').description('do something about one task')
  addClientOptions(
    task.command('end').description('cancel a task').argument('<id>', 'its id, or the start of it that no other has'),
  )
    .addHelpText(
      'after',
      '\nExit code: 0 cancelled, 4 not known or not one, 5 it had ended.\n\nExamples:\n  $ agent-tasks task end task_1795307098820_1',
    )
    .action((id: string, options: ClientOptions) => end(id, options, surroundings))

  addClientOptions(program.command('instances').description('list what can run commands'))
    .addHelpText('after', '\nExamples:\n  $ agent-tasks instances\n  $ agent-tasks instances --json | jq .tools')
    .action((options: ClientOptions) => listInstances(options, surroundings))
}

/** Tasks as lines with a head. */
export function taskRows(tasks: readonly TaskSummary[]): string[] {
  const rows = tasks.map(({ id, status, currentCommandIndex, totalCommands, instanceId, createdAt, name }) => [
    id,
    status,
    `${status === 'completed' ? totalCommands : Math.min(currentCommandIndex, totalCommands)}/${totalCommands}`,
    instanceId,
    formatAge(createdAt),
    oneLine(name, 60),
  ])
  return formatTable(['ID', 'STATUS', 'DONE', 'INSTANCE', 'AGE', 'NAME'], rows)
}

async function list(options: ListOptions, surroundings: Surroundings): Promise<void> {
  const { instance, json } = options
  const limit = readInteger('--limit', options.limit, 1, 100_000)
  const status = options.status === undefined ? undefined : taskStatusSchema.safeParse(options.status)
  if (status?.success === false) {
    throw new InvalidInputError('--status', options.status, `one of ${taskStatusSchema.options.join(', ')}`)
  }
  const terminal = createTerminal(surroundings, 'stdout')
  const tasks: TaskSummary[] = []
  await withClient(options, surroundings, async (client) => {
    let cursor: string | undefined
    do {
      const page = await client.list({
        limit: Math.min(1000, limit - tasks.length),
        ...(instance !== undefined && { instanceId: instance }),
        ...(status !== undefined && { status: status.data }),
        ...(cursor !== undefined && { cursor }),
      })
      tasks.push(...page.tasks)
      cursor = page.nextCursor
    } while (cursor !== undefined && tasks.length < limit)
  })
  if (json === true) tasks.forEach(terminal.printJson)
  else if (tasks.length === 0) terminal.say('There is no such task.')
  else taskRows(tasks).forEach(terminal.print)
}

async function end(idOrPrefix: string, options: ClientOptions, surroundings: Surroundings): Promise<void> {
  const terminal = createTerminal(surroundings, 'stdout')
  const [id, wasRunning] = await withClient(options, surroundings, async (client) => {
    const found = await findTask(client, idOrPrefix)
    return [found, await client.cancel(found)] as const
  })
  if (options.json === true) terminal.printJson({ taskId: id, cancelled: wasRunning })
  else terminal.print(wasRunning ? `${id} was cancelled.` : `${id} had ended already.`)
  if (!wasRunning) throw new CommandEnd(EXIT.taskCancelled)
}

/** @throws TaskServerError when no task or several have such an id */
async function findTask(client: TaskClient, idOrPrefix: string): Promise<string> {
  if ((await client.get(idOrPrefix)) !== undefined) return idOrPrefix
  const { tasks } = await client.list({ limit: 1000 })
  const ids = tasks.map(({ id }) => id).filter((id) => id.startsWith(idOrPrefix))
  const [id] = ids
  if (id === undefined) throw new TaskServerError('TASK_NOT_FOUND', `There is no task ${idOrPrefix}.`)
  if (ids.length > 1) {
    throw new TaskServerError(
      'TASK_AMBIGUOUS',
      `${idOrPrefix} could be ${ids.slice(0, 5).join(', ')}. Write more of the id.`,
    )
  }
  return id
}

async function listInstances(options: ClientOptions, surroundings: Surroundings): Promise<void> {
  const terminal = createTerminal(surroundings, 'stdout')
  const instances = await withClient(options, surroundings, (client) => client.instances())
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
