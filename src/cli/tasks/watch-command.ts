/** `agent-tasks tasks watch [id]`: follows one task to its end, or all tasks until Ctrl-C. */
import type { Command } from 'commander'
import { hasEnded } from '../../../machines/task-status.js'
import { addReconnectOption, interruptible } from '../client-options.js'
import { endCode, EXIT, type ExitCode } from '../exit-codes.js'
import { CommandEnd } from '../failures.js'
import { followTask } from '../follow.js'
import { readInteger } from '../numbers.js'
import { createTerminal, type ProgramIO, type Terminal } from '../terminal.js'
import { doneText, isOver, taskTable, type ListedTask, type TaskRef } from './listed-task.js'
import { printResults } from './show-command.js'
import { addSourceOptions, SOURCES_HELP, withSource, type SourceOptions } from './source-options.js'
import type { TaskSource } from './task-source.js'

interface WatchCommandOptions extends SourceOptions {
  readonly interval: string
}

/** The maximum number of tasks in the table on a terminal. */
const SHOWN = 20

/** The maximum number of tasks that are compared each time when the output is not a terminal. */
const LISTED = 1000

export function addWatchCommand(tasks: Command, io: ProgramIO): void {
  addReconnectOption(
    addSourceOptions(
      tasks
        .command('watch')
        .description('follow one task to its end, or all tasks until Ctrl-C')
        .argument('[id]', 'the id of a task, or a unique prefix of it'),
    ),
  )
    .option('--interval <ms>', 'how often all tasks of a server, or a store, are read, in ms', '1000')
    .addHelpText(
      'after',
      `${SOURCES_HELP}
With an id, the exit codes are those of submit. Without one, it shows a table on a terminal, or prints a line for each change when piped.
With --page, changes arrive as they happen.

Examples:
  $ agent-tasks tasks watch
  $ agent-tasks tasks watch task_1795307098820_1
  $ AGENT_TASKS_PAGE='http://127.0.0.1:3320/#token=…' agent-tasks tasks watch --json | jq .status`,
    )
    .action((id: string | undefined, options: WatchCommandOptions) => watchTasks(id, options, io))
}

async function watchTasks(id: string | undefined, options: WatchCommandOptions, io: ProgramIO): Promise<void> {
  const isJson = options.json === true
  const terminal = createTerminal(io, 'stdout')
  const intervalMs = readInteger('--interval', options.interval, 50, 3_600_000)
  const exitCode = await withSource(options, io, (source, server) =>
    interruptible(async (signal): Promise<ExitCode> => {
      const watch = { source, terminal, isJson, intervalMs, signal }
      if (id === undefined) return watchAll(watch)
      const found = await source.find(id)
      if (server === undefined) return watchOne(found, watch)
      return followTask(server, found.task_id, { terminal, isJson, signal, toJson: eventJson })
    }),
  )
  if (exitCode !== EXIT.ok) throw new CommandEnd(exitCode)
}

/** The line of `--json` for an event of the followed task. */
const eventJson = ({ taskId, ...event }: { readonly taskId: string }): object => ({ task_id: taskId, ...event })

interface Watch {
  readonly source: TaskSource
  readonly terminal: Terminal
  readonly isJson: boolean
  readonly intervalMs: number
  readonly signal: AbortSignal
}

async function watchAll({ source, terminal, isJson, intervalMs, signal }: Watch): Promise<ExitCode> {
  const live = isJson ? undefined : terminal.live
  const known = new Map<string, ListedTask>()
  const print = createPrinter(terminal, isJson)
  try {
    for await (const changed of source.changes({ limit: LISTED, intervalMs, signal })) {
      if (live === undefined) changed.toReversed().forEach(print)
      else {
        for (const task of changed) known.set(`${task.kind}:${task.task_id}`, task)
        const newest = [...known.values()].sort((a, b) => b.createdAt - a.createdAt)
        for (const task of newest.splice(SHOWN)) known.delete(`${task.kind}:${task.task_id}`)
        live.draw(taskTable(newest))
      }
    }
    return EXIT.ok
  } finally {
    live?.done()
  }
}

/** Follows one task of a page or of a store. Prints a line for each change, and then the result. */
async function watchOne({ task_id, kind }: TaskRef, watch: Watch): Promise<ExitCode> {
  const { source, terminal, isJson, intervalMs, signal } = watch
  const print = createPrinter(terminal, isJson)
  for await (const changed of source.changes({ limit: Infinity, intervalMs, signal })) {
    const task = changed.find((one) => one.task_id === task_id && one.kind === kind)
    if (task === undefined) continue
    if (!hasEnded(task.status)) {
      print(task)
      continue
    }
    const shown = await source.show(task)
    if (isJson) terminal.printJson(shown)
    else {
      terminal.say(lineOf(shown))
      printResults(shown, terminal)
    }
    return endCode(task.status)
  }
  throw new Error(`The watch of ${task_id} ended before the task.`)
}

/** Prints a task only if its line is different from the line that was last printed for this task. */
function createPrinter(terminal: Terminal, isJson: boolean): (task: ListedTask) => void {
  const printed = new Map<string, string>()
  return (task) => {
    const key = `${task.kind}:${task.task_id}`
    const line = lineOf(task)
    if (printed.get(key) === line) return
    printed.set(key, line)
    if (isJson) terminal.printJson(task)
    else terminal.print(line)
  }
}

function lineOf(task: ListedTask): string {
  const status = task.state ?? task.status
  if (task.kind === 'command') return `${task.task_id} ${task.instanceId ?? ''} ${status} ${doneText(task)}`.trimEnd()
  const why = isOver(task) && task.error !== undefined ? `: ${task.error}` : ''
  return `${task.task_id} ${task.owner ?? ''} ${status}${why}`
}
