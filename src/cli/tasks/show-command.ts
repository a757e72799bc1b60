/** `agent-tasks tasks show <id>`: prints everything that is known about one task. */
import type { Command } from 'commander'
import { isoTime } from '../../data/duration.js'
import { oneLine } from '../table.js'
import { createTerminal, type ProgramIO, type Terminal } from '../terminal.js'
import { questionWords } from '../../features/questions/question-texts.js'
import { doneText } from './listed-task.js'
import { addSourceOptions, SOURCES_HELP, withSource, type SourceOptions } from './source-options.js'
import type { ShownTask } from './task-source.js'

export function addShowCommand(tasks: Command, io: ProgramIO): void {
  addSourceOptions(
    tasks
      .command('show')
      .description('show a task with its goal, its commands, and its result or error')
      .argument('<id>', 'the id, or a unique prefix of it'),
  )
    .addHelpText(
      'after',
      `${SOURCES_HELP}
Exit code: 0 shown, 3 no server or page, 4 no such task or several.

Examples:
  $ agent-tasks tasks show task_1795307098820_1
  $ agent-tasks tasks show researcher-1 --store .agent/tasks.db --json | jq .result`,
    )
    .action((id: string, options: SourceOptions) => showTask(id, options, io))
}

async function showTask(idOrPrefix: string, options: SourceOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const task = await withSource(options, io, async (source) => source.show(await source.find(idOrPrefix)))
  if (options.json === true) {
    terminal.printJson(task)
    return
  }
  for (const [name, value] of factsOf(task)) if (value !== undefined) terminal.print(`${name.padEnd(10)}${value}`)
  for (const [index, { tool_name, status, args, ...command }] of (task.commands ?? []).entries()) {
    const error = errorText(command)
    const why = error === undefined ? '' : `: ${error}`
    terminal.print(`  ${index + 1}. ${tool_name} ${oneLine(JSON.stringify(args ?? {}), 100)} ${status}${why}`)
  }
  printResults(task, terminal)
}

function errorText({ error, errorCode }: Pick<ShownTask, 'error' | 'errorCode'>): string | undefined {
  return error === undefined || errorCode === undefined ? error : `${errorCode}: ${error}`
}

function factsOf(task: ShownTask): readonly (readonly [string, string | undefined])[] {
  const time = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : isoTime(ms))
  const { questions = [] } = task
  return [
    ['Task', task.task_id],
    ['Status', [task.state ?? task.status, doneText(task)].join(' ').trim()],
    ['Subagent', task.subagent],
    ['Owner', task.owner],
    ['Name', task.name],
    ['Instance', task.instanceId],
    ['Created', time(task.createdAt)],
    ['Started', time(task.startedAt)],
    ['Ended', time(task.completedAt)],
    ['Delivery', task.delivery],
    ['Goal', task.goal ?? (task.intention === '' ? undefined : task.intention)],
    ['Error', errorText(task)],
    ['Reason', task.cancelReason],
    ...questions.map((question) => ['Question', `${question.id}: ${questionWords(question, Infinity)}`] as const),
  ]
}

/** Prints what the task returned: the text of an async task, or the results of a command task's commands. */
export function printResults({ result, commands = [] }: ShownTask, terminal: Terminal): void {
  for (const value of [result, ...commands.map((command) => command.result)]) {
    if (value !== undefined) terminal.printResult(textOf(value))
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const { final_message: message } = Object(value) as { readonly final_message?: unknown }
  return typeof message === 'string' ? message : JSON.stringify(value)
}
