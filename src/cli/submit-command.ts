/** `agent-tasks submit FILE|-`: submits a task and follows it. */
import type { Command } from 'commander'
import {
  addClientOptions,
  addReconnectOption,
  interruptible,
  withClient,
  type ClientOptions,
} from './client-options.js'
import { EXIT } from './exit-codes.js'
import { CommandEnd } from './failures.js'
import { followTask } from './follow.js'
import { readTask } from './task-file.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface SubmitOptions extends ClientOptions {
  readonly instance?: string
  readonly detach?: boolean
}

export function addSubmitCommand(program: Command, io: ProgramIO): void {
  addReconnectOption(
    addClientOptions(
      program
        .command('submit')
        .description('submit a task and follow it to its end')
        .argument('<file>', 'a JSON file with the task, or - for standard input'),
    ),
  )
    .option('--instance <id>', 'run it on this instance instead of the one in the file')
    .option('--detach', 'print the id of the task and exit')
    .addHelpText(
      'after',
      `
Progress goes to standard error, results of the commands to standard output. Ctrl-C cancels the task.
Exit code: 0 completed, 1 failed, 5 cancelled; 2 invalid input, 3 no server, 4 refused, 130 Ctrl-C.

Examples:
  $ agent-tasks submit task.json
  $ echo '{"task_name":"Add","commands":[{"tool_name":"add","args":{"a":2,"b":3}}]}' | agent-tasks submit -
  $ agent-tasks submit task.json --json | tail -n 1`,
    )
    .action((file: string, options: SubmitOptions) => submit(file, options, io))
}

async function submit(file: string, options: SubmitOptions, io: ProgramIO): Promise<void> {
  const isJson = options.json === true
  const read = await readTask(file, io.readStdin)
  const task = options.instance === undefined ? read : { ...read, instanceId: options.instance }
  const terminal = createTerminal(io, 'stderr')
  const exitCode = await withClient(options, io, (client) => {
    let taskId: string | undefined
    // Signals are handled before the task is submitted, so that Ctrl-C always cancels the task.
    return interruptible(
      async (signal) => {
        const submitted = await client.submit(task)
        taskId = submitted.taskId
        if (isJson) terminal.printJson({ type: 'submitted', ...submitted })
        signal.throwIfAborted()
        if (options.detach !== true) return followTask(client, taskId, { terminal, isJson, signal, submitted: task })
        if (!isJson) terminal.print(taskId)
        return EXIT.ok
      },
      async () => {
        if (taskId === undefined) {
          terminal.say('The server has not answered, so the task may run. `agent-tasks tasks list` shows it.')
          return
        }
        const mayRun = `${taskId} may still run: agent-tasks tasks cancel ${taskId}`
        if (client.connection !== 'connected') {
          terminal.say(mayRun)
          return
        }
        const wasCancelled = await client.cancel(taskId).catch(() => false)
        terminal.say(wasCancelled ? `${taskId} was cancelled.` : mayRun)
      },
    )
  })
  if (exitCode !== 0) throw new CommandEnd(exitCode)
}
