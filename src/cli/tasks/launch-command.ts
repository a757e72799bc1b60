/** `agent-tasks tasks launch`: launches a task of a subagent of a running host, through its page. */
import type { Command } from 'commander'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InvalidInputError } from '../../errors.js'
import { createTerminal, type ProgramIO } from '../terminal.js'
import { connectPage } from './page-connection.js'

interface LaunchOptions {
  readonly page?: string
  readonly owner?: string
  readonly timeoutSeconds?: string
  readonly context?: string
  readonly json?: boolean
}

export function addLaunchCommand(tasks: Command, io: ProgramIO): void {
  tasks
    .command('launch')
    .description('launch a task of a subagent of a running host, and print its id')
    .argument('<subagent>', 'the name of the subagent')
    .argument('<goal>', 'what the task must achieve; - reads it from standard input')
    .option('--page <link>', 'the page of the host (default: AGENT_TASKS_PAGE)')
    .option('--owner <owner>', 'who receives the result (default: the owner of the host)')
    .option('--timeout-seconds <seconds>', 'the deadline of its run')
    .option('--context <json>', 'further input for the subagent, as a JSON object')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The result is delivered to the owner, as if the agent had launched the task. To wait for it: \`agent-tasks tasks watch <id>\`.
Exit code: 0 launched, 2 invalid input, 3 no page, 4 refused, for example because no slot is free.

Examples:
  $ agent-tasks tasks launch researcher 'compare the parsers'
  $ agent-tasks tasks watch "$(agent-tasks tasks launch tests all)"`,
    )
    .action((subagent: string, goal: string, options: LaunchOptions) => launch(subagent, goal, options, io))
}

async function launch(subagent: string, goal: string, options: LaunchOptions, io: ProgramIO): Promise<void> {
  const { page, owner, timeoutSeconds, context, json } = options
  const [option, link] = page === undefined ? ['AGENT_TASKS_PAGE', io.env['AGENT_TASKS_PAGE']] : ['--page', page]
  if (link === undefined || link === '') throw new InvalidInputError('--page', undefined, 'the link of a page')
  const body = {
    goal: goal === '-' ? await io.readStdin() : goal,
    ...omitUndefined({ owner, context: context === undefined ? undefined : objectOf(context) }),
    ...(timeoutSeconds !== undefined && { options: { timeout_seconds: secondsOf(timeoutSeconds) } }),
  }
  const id = await connectPage(option, link).launch(subagent, body)
  const terminal = createTerminal(io, 'stdout')
  if (json === true) terminal.printJson({ task_id: id })
  else terminal.print(id)
}

function secondsOf(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidInputError('--timeout-seconds', text, 'a number of seconds > 0')
  return Number(text)
}

function objectOf(text: string): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new InvalidInputError('--context', text, 'a JSON object')
}
