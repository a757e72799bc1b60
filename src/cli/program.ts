/** The command line `agent-tasks`: its commands, and how each of them ends. */
import tab from '@bomb.sh/tab/commander'
import { Command, CommanderError } from 'commander'
import { addMcpCommand } from './mcp-command.js'
import { addConfigCommand } from './config-command.js'
import { addDoctorCommand } from './doctor-command.js'
import { addServeCommand } from './serve-command.js'
import { addSubmitCommand } from './submit-command.js'
import { addTasksCommands } from './tasks-commands.js'
import { addWatchCommand } from './watch-command.js'
import { CommandEnd, describeError } from './failures.js'
import { EXIT, type ExitCode } from './exit-codes.js'
import type { Surroundings } from './terminal.js'

/** @param version what --version prints */
export function createProgram(surroundings: Surroundings, version: string): Command {
  const program = new Command('agent-tasks')
    .description('Background work for AI agents: every result comes back exactly once.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void surroundings.stdout.write(text),
      writeErr: (text) => void surroundings.stderr.write(text),
    })
    .showHelpAfterError('Run it with --help to see what it takes.')
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 the task failed, 2 bad input, 3 no server, 4 refused, 5 the task was cancelled, 6 doctor found something,
130 Ctrl-C. AGENT_TASKS_URL names the server, AGENT_TASKS_TOKEN is its token. --json prints JSON everywhere.

Examples:
  $ agent-tasks serve --demo
  $ agent-tasks submit task.json
  $ source <(agent-tasks completion bash)`,
    )
  addServeCommand(program, surroundings)
  addMcpCommand(program)
  addSubmitCommand(program, surroundings)
  addWatchCommand(program, surroundings)
  addTasksCommands(program, surroundings)
  addConfigCommand(program, surroundings)
  addDoctorCommand(program, surroundings)
  tab(program, { completionCommandName: 'completion' })
  return program
}

/**
 * Runs one command line.
 * @param args what follows the program's name
 * @returns the exit code; never rejects
 */
export async function runProgram(
  args: readonly string[],
  surroundings: Surroundings,
  version: string,
): Promise<ExitCode> {
  try {
    await createProgram(surroundings, version).parseAsync(args, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof CommandEnd) return error.exitCode
    // It has said what is wrong; help and version end like this as well.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const { message, hint, code, exitCode } = describeError(error)
    if (args.includes('--json')) surroundings.stderr.write(`${JSON.stringify({ error: message, code, hint })}\n`)
    else surroundings.stderr.write(`agent-tasks: ${message}\n${hint === undefined ? '' : `${hint}\n`}`)
    return exitCode
  }
}
