/** The former names of commands. They work as before, and their JSON output is the same. They also print the present name. */
import type { Command } from 'commander'
import { addClientOptions, addReconnectOption, type ClientOptions } from '../client-options.js'
import { createTerminal, type ProgramIO } from '../terminal.js'
import { cancelTask } from './tasks-commands.js'
import { watchTasks, type ToJson, type WatchCommandOptions } from './watch-command.js'

export function addOldNames(program: Command, io: ProgramIO): void {
  const isNow = (before: string, now: string): void =>
    createTerminal(io, 'stderr').say(`agent-tasks ${before} has a new name: agent-tasks ${now}`)

  const task = program.command('task', { hidden: true }).description('former names of commands for tasks')
  addClientOptions(
    task.command('end').alias('cancel').description('former name of `agent-tasks tasks cancel`').argument('<id>'),
  )
    .addHelpText('after', '\nExamples:\n  $ agent-tasks tasks cancel task_1795307098820_1')
    .action(async (id: string, options: ClientOptions) => {
      isNow('task end', 'tasks cancel')
      await cancelTask(id, options, io, (taskId, cancelled) => ({ taskId, cancelled }))
    })

  addReconnectOption(
    addClientOptions(
      program
        .command('watch', { hidden: true })
        .description('former name of `agent-tasks tasks watch`')
        .argument('[id]'),
    ),
  )
    .option('--interval <ms>', 'how often all tasks are listed, in ms', '1000')
    .addHelpText('after', '\nExamples:\n  $ agent-tasks tasks watch')
    .action(async (id: string | undefined, options: WatchCommandOptions) => {
      isNow('watch', 'tasks watch')
      await watchTasks(id, options, io, FORMER_JSON)
    })
}

const FORMER_JSON: ToJson = {
  task: ({ task_id, kind: _, ...task }) => ({ id: task_id, ...task }),
  event: (event) => event,
}
