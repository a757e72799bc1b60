/** `agent-tasks tasks`: the commands for tasks of both kinds. */
import type { Command } from 'commander'
import { STATUSES } from '../../../machines/task-status.js'
import { InvalidInputError } from '../../errors.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { EXIT } from '../exit-codes.js'
import { CommandEnd } from '../failures.js'
import { readInteger } from '../numbers.js'
import { createTerminal, type ProgramIO } from '../terminal.js'
import { addHistoryCommand } from './history-command.js'
import { isOver, STATES, taskTable, type ListedTask } from './listed-task.js'
import { addLaunchCommand } from './launch-command.js'
import { addLimitCommands } from './limit-commands.js'
import { addShowCommand } from './show-command.js'
import { addSourceOptions, SOURCES_HELP, withSource, type SourceOptions } from './source-options.js'
import type { TaskFilter } from './task-source.js'
import { addWatchCommand } from './watch-command.js'

interface ListOptions extends SourceOptions {
  readonly status?: string
  readonly kind?: string
  readonly owner?: string
  readonly subagent?: string
  readonly instance?: string
  readonly limit: string
}

export interface CancelOptions extends SourceOptions {
  readonly reason?: string
}

const FILTERS = [...STATUSES, ...STATES, 'all'] as const
const KINDS = ['async', 'command'] as const

export function addTasksCommands(program: Command, io: ProgramIO): void {
  const tasks = program.command('tasks').description('list, show, cancel and watch tasks of both kinds')
  addSourceOptions(tasks.command('list').description('list tasks, newest first'))
    .option('--status <status>', `only tasks with this status, or in this state: ${FILTERS.join(', ')}`)
    .option('--kind <kind>', `only tasks of this kind: ${KINDS.join(', ')}`)
    .option('--owner <owner>', 'only async tasks of this owner')
    .option('--subagent <name>', 'only async tasks of this subagent')
    .option('--instance <id>', 'only command tasks of this instance')
    .option('--limit <count>', 'the most tasks to list', '100')
    .addHelpText(
      'after',
      `${SOURCES_HELP}
Examples:
  $ agent-tasks tasks list --status running
  $ agent-tasks tasks list --page 'http://127.0.0.1:3320/#token=…' --subagent researcher
  $ agent-tasks tasks list --store .agent/tasks.db --json | jq -r .task_id`,
    )
    .action((options: ListOptions) => list(options, io))
  addShowCommand(tasks, io)
  addSourceOptions(
    tasks.command('cancel').description('cancel a task').argument('<id>', 'the id, or a unique prefix of it'),
  )
    .option('--reason <text>', 'why, for the owner of an async task (with --page)')
    .addHelpText(
      'after',
      `${SOURCES_HELP}
Exit code: 0 cancelled, 2 the source cannot cancel, 3 no server or page, 4 no such task or several, 5 it had ended.

Examples:
  $ agent-tasks tasks cancel task_1795307098820_1
  $ agent-tasks tasks cancel researcher-1 --reason 'no longer needed' --page 'http://127.0.0.1:3320/#token=…'`,
    )
    .action((id: string, options: CancelOptions) => cancelTask(id, options, io))
  addLaunchCommand(tasks, io)
  addLimitCommands(tasks, io)
  addWatchCommand(tasks, io)
  addHistoryCommand(tasks, io)
}

async function list(options: ListOptions, io: ProgramIO): Promise<void> {
  const limit = readInteger('--limit', options.limit, 1, 100_000)
  const filter = readFilter(options)
  const terminal = createTerminal(io, 'stdout')
  await withSource(options, io, async (source) => {
    const found = await source.list(limit, filter)
    if (options.json === true) found.forEach(terminal.printJson)
    else if (found.length > 0) taskTable(found).forEach(terminal.print)
    else if (Object.keys(filter).length === 0) terminal.say(`${source.name} has no tasks.`)
    else terminal.say(`${source.name} has no task that matches.`)
  })
}

function readFilter({ status, kind, owner, subagent, instance }: ListOptions): TaskFilter {
  const wanted = oneOf('--status', status, FILTERS)
  return omitUndefined({
    status: wanted === 'all' ? undefined : wanted,
    kind: oneOf('--kind', kind, KINDS),
    owner,
    subagent,
    instance,
  })
}

/**
 * Checks that an option has one of the given values.
 * @throws INVALID_INPUT if it has another value
 */
function oneOf<Word extends string>(option: string, value: string | undefined, words: readonly Word[]) {
  if (value === undefined) return undefined
  const word = words.find((known) => known === value)
  if (word === undefined) throw new InvalidInputError(option, value, `one of ${words.join(', ')}`)
  return word
}

async function cancelTask(idOrPrefix: string, options: CancelOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const { reason, json } = options
  const [id, end] = await withSource(options, io, async (source, server) => {
    if (server !== undefined && reason !== undefined) {
      throw new InvalidInputError(
        '--reason',
        reason,
        'no reason, because a server accepts none; add --page, or leave --reason out',
      )
    }
    const found = await source.find(idOrPrefix, (task: ListedTask) => !isOver(task))
    return [found.task_id, await source.cancel(found, reason)] as const
  })
  const wasCancelled = end !== false
  const stopping = typeof end === 'object' ? end : undefined
  const more =
    stopping === undefined
      ? ''
      : ` Its program is being stopped, which may take up to ${stopping.stopsWithinMs / 1000} s.`
  if (json === true) terminal.printJson({ task_id: id, cancelled: wasCancelled, ...stopping })
  else terminal.print(wasCancelled ? `${id} was cancelled.${more}` : `${id} had already ended.`)
  if (!wasCancelled) throw new CommandEnd(EXIT.taskCancelled)
}
