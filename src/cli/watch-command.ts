/** `agent-tasks watch [id]`: follows one task to its end, or all tasks until Ctrl-C. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import type { TaskClient } from '../client/task-client.js'
import type { TaskSummary } from '../protocol/command-tasks.js'
import {
  addClientOptions,
  addReconnectOption,
  interruptible,
  withClient,
  type ClientOptions,
} from './client-options.js'
import { CommandEnd } from './failures.js'
import { followTask } from './follow.js'
import { readInteger } from './numbers.js'
import { findTaskId, listTasks, taskRows } from './task-list.js'
import { createTerminal, type ProgramIO, type Terminal } from './terminal.js'

interface WatchCommandOptions extends ClientOptions {
  readonly interval: string
}

/** How many tasks the table on a terminal has. */
const SHOWN = 20

/** How many tasks are compared at each interval otherwise. */
const LISTED = 1000

export function addWatchCommand(program: Command, io: ProgramIO): void {
  addReconnectOption(
    addClientOptions(
      program
        .command('watch')
        .description('follow one task to its end, or all tasks until Ctrl-C')
        .argument('[id]', 'the id of a task, or a unique prefix of it'),
    ),
  )
    .option('--interval <ms>', 'the polling interval for all tasks, in ms', '1000')
    .addHelpText(
      'after',
      `
With an id, the exit codes are those of submit. Without one, it shows a table on a terminal, or prints a line for each change when piped.

Examples:
  $ agent-tasks watch
  $ agent-tasks watch task_1795307098820_1
  $ agent-tasks watch --json | jq .status`,
    )
    .action((id: string | undefined, options: WatchCommandOptions) => watch(id, options, io))
}

async function watch(id: string | undefined, options: WatchCommandOptions, io: ProgramIO): Promise<void> {
  const isJson = options.json === true
  const terminal = createTerminal(io, 'stdout')
  const intervalMs = readInteger('--interval', options.interval, 50, 3_600_000)
  const exitCode = await withClient(options, io, (client) =>
    interruptible(async (signal) => {
      if (id !== undefined) return followTask(client, await findTaskId(client, id), { terminal, isJson, signal })
      return watchAll(client, { terminal, isJson, intervalMs, signal })
    }),
  )
  if (exitCode !== 0) throw new CommandEnd(exitCode)
}

interface WatchAllOptions {
  readonly terminal: Terminal
  readonly isJson: boolean
  readonly intervalMs: number
  readonly signal: AbortSignal
}

async function watchAll(client: TaskClient, options: WatchAllOptions): Promise<never> {
  const { terminal, isJson, intervalMs, signal } = options
  const live = isJson ? undefined : terminal.live
  let known = new Map<string, string>()
  try {
    for (;;) {
      const tasks = await listTasks(client, live === undefined ? LISTED : SHOWN)
      if (live === undefined) known = printChanges(tasks, known, options)
      else live.draw(taskRows(tasks))
      await wait(intervalMs, undefined, { signal })
    }
  } finally {
    live?.done()
  }
}

/** Prints a line for each changed task, oldest first. */
function printChanges(
  tasks: readonly TaskSummary[],
  known: ReadonlyMap<string, string>,
  { terminal, isJson }: WatchAllOptions,
): Map<string, string> {
  const present = new Map<string, string>()
  for (const task of tasks.toReversed()) {
    const state = `${task.status} ${Math.min(task.currentCommandIndex + 1, task.totalCommands)}/${task.totalCommands}`
    present.set(task.id, state)
    if (known.get(task.id) === state) continue
    if (isJson) terminal.printJson(task)
    else terminal.print(`${task.id} ${task.instanceId} ${state}`)
  }
  return present
}
