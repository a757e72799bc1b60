/** The command line `agent-tasks`: its commands and exit codes. */
import tab from '@bomb.sh/tab/commander'
import { Command, CommanderError } from 'commander'
import { completeBash } from './bash-completion.js'
import { addAskCommand } from './ask-command.js'
import { addMcpCommand } from './mcp-command.js'
import { addConfigCommand } from './config-command.js'
import { addDoctorCommand } from './doctor-command.js'
import { addHooksCommand } from '../features/hooks/cli.js'
import { addExtensionCommand } from './extension-command.js'
import { addInstancesCommand } from './instances-command.js'
import { addServeCommand } from './serve-command.js'
import { addStoreCommand } from './store-command.js'
import { addSubmitCommand } from './submit-command.js'
import { addTasksCommands } from './tasks/tasks-commands.js'
import { addWorkerCommand } from './worker-command.js'
import { addWorktreesCommand } from './worktrees-command.js'
import { CommandEnd, describeError } from './failures.js'
import { EXIT, type ExitCode } from './exit-codes.js'
import { checkPlaces } from './misplaced.js'
import { toLines } from '../data/control-characters.js'
import { toJsonLine, type ProgramIO } from './terminal.js'

/** @param version the text that `--version` prints */
function createProgram(io: ProgramIO, version: string): Command {
  const program = new Command('agent-tasks')
    .description('Background work for AI agents: every result comes back exactly once.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .showHelpAfterError('Run it with --help for usage.')
    .addHelpText(
      'after',
      `
Exit codes: 0 success, 1 the task failed, 2 invalid input, 3 no server, 4 refused, 5 the task was cancelled, 6 doctor found something
missing, 7 a question was declined, 8 it was not answered, 130 Ctrl-C, 141 broken pipe. AGENT_TASKS_URL is the URL of the server, AGENT_TASKS_TOKEN its token,
AGENT_TASKS_PAGE the link of a page. Most commands print JSON with --json.

Examples:
  $ agent-tasks serve --demo
  $ agent-tasks submit task.json
  $ agent-tasks tasks watch
  $ source <(agent-tasks completion bash)`,
    )
  addServeCommand(program, io)
  addMcpCommand(program, io)
  addWorkerCommand(program, io)
  addSubmitCommand(program, io)
  addTasksCommands(program, io)
  addInstancesCommand(program, io)
  addAskCommand(program, io)
  addConfigCommand(program, io)
  addStoreCommand(program, io)
  addWorktreesCommand(program, io)
  addHooksCommand(program, io)
  addDoctorCommand(program, io)
  addExtensionCommand(program, io)
  completeBash(program, io)
  tab(program, { completionCommandName: 'completion' })
  return program
}

/**
 * Runs one command line.
 * @param args the arguments after the program's name
 * @returns the exit code; never rejects
 */
export async function runProgram(args: readonly string[], io: ProgramIO, version: string): Promise<ExitCode> {
  try {
    checkPlaces(args)
    await createProgram(io, version).parseAsync(args, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof CommandEnd) return error.exitCode
    // commander has already printed its message, the help or the version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const { message, hint, code, exitCode } = describeError(error)
    if (args.includes('--json')) io.stderr.write(`${toJsonLine({ error: message, code, hint })}\n`)
    else io.stderr.write(`agent-tasks: ${toLines(message)}\n${hint === undefined ? '' : `${hint}\n`}`)
    return exitCode
  }
}
