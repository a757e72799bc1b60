/** `agent-tasks hooks`: configures the hooks of a client, so that results wake it. */
import { realpathSync } from 'node:fs'
import { argv, cwd, execPath } from 'node:process'
import type { Command } from 'commander'
import { EXIT } from '../../cli/exit-codes.js'
import { CommandEnd } from '../../cli/failures.js'
import { createTerminal, type ProgramIO } from '../../cli/terminal.js'
import { InvalidSettingError } from '../../errors.js'
import { HOOK_CLIENTS, HOOK_SETUPS } from './clients.js'
import { checkHooks, findServerName, planOf, printHooks, removeHooks, writeHooks, type HookPlan } from './configure.js'
import { CLIENT_NAMES, type ClientName } from './hook-client.js'
import type { HookScope } from './hook-setup.js'

const SCOPES: readonly HookScope[] = ['user', 'project']

const ACTIONS = ['print', 'write', 'remove', 'check'] as const

type Action = (typeof ACTIONS)[number]

interface HooksOptions extends Partial<Readonly<Record<Action, boolean>>> {
  readonly client: string
  readonly scope: string
  readonly server?: string
  readonly wakeIdle?: boolean
}

export function addHooksCommand(program: Command, io: ProgramIO): void {
  program
    .command('hooks')
    .description('let results of background tasks wake an agent in its client, by the hooks of the client')
    .requiredOption('--client <name>', `the client: ${CLIENT_NAMES.join(', ')}`)
    .option('--scope <scope>', 'whose configuration: user, or project (this folder)', 'user')
    .option('--server <name>', "the name of the MCP server in the client's configuration (default: looked up there)")
    .option('--wake-idle', 'codex: start a turn with codex queue when a result is there while a terminal is idle')
    .option('--print', 'print the file and what belongs into it (the default)')
    .option('--write', 'write it; entries of others stay as they are')
    .option('--remove', 'remove it')
    .option('--check', 'check that it is there')
    .addHelpText(
      'after',
      `
The client needs the MCP server, too (agent-tasks mcp --help). A file of a project is written only if people do not commit it. Exit code of --check: 0, or 6
when something is missing.

Examples:
  $ agent-tasks hooks --client claude --write
  $ agent-tasks hooks --client codex --wake-idle --write
  $ agent-tasks hooks --client codex --check
  $ agent-tasks hooks --client gemini --print
  $ agent-tasks hooks --client claude --scope project --remove`,
    )
    .action((options: HooksOptions) => runHooks(options, io))
}

function runHooks(options: HooksOptions, io: ProgramIO): void {
  const { print } = createTerminal(io, 'stdout')
  const plan = readPlan(options, io)
  const { title } = HOOK_CLIENTS[plan.client]
  switch (readAction(options)) {
    case 'print': {
      const { file, text } = printHooks(plan)
      print(`Add this to ${file}:`)
      print(text)
      break
    }
    case 'write': {
      const { file, hasChanged } = writeHooks(plan)
      print(hasChanged ? `Wrote the hooks of ${title} to ${file}.` : `${file} has the hooks already.`)
      break
    }
    case 'remove': {
      const { file, hasChanged } = removeHooks(plan)
      print(hasChanged ? `Removed the hooks of ${title} from ${file}.` : `${file} has no such hooks.`)
      return
    }
    case 'check': {
      const problems = checkHooks(plan)
      for (const problem of problems) print(problem)
      if (problems.length > 0) throw new CommandEnd(EXIT.unhealthy)
      print(`The hooks of ${title} are there.`)
    }
  }
  print(`They call the MCP server ${JSON.stringify(plan.target.server)}. ${HOOK_SETUPS[plan.client].trust}`)
  print('Without a store (agent-tasks mcp --store DIR), results end with the client. docs/waking.md has the details.')
}

interface HooksFinding {
  readonly check: string
  readonly state: 'ok' | 'note'
  readonly detail: string
}

/** What `doctor` says of the hooks of each client whose configuration names this package as an MCP server. */
export function examineHooks(env: HookPlan['env'], folder: string): readonly HooksFinding[] {
  return CLIENT_NAMES.flatMap((client): readonly HooksFinding[] => {
    const place = { scope: 'user', folder, env } as const
    const server = findServerName(client, place)
    if (server === undefined) return []
    const [problem] = checkHooks(planOf({ client, ...place, command: ownCommand(), server }))
    const check = `hooks of ${HOOK_CLIENTS[client].title}`
    return problem === undefined
      ? [{ check, state: 'ok', detail: 'results wake it' }]
      : [
          {
            check,
            state: 'note',
            detail: `${problem} To let results wake it, run agent-tasks hooks --client ${client} --write`,
          },
        ]
  })
}

// Never npx: it would run a package of the folder in which the client happens to be.
const ownCommand = (): string[] => [execPath, realpathSync(argv[1] ?? '')]

function readPlan({ client, scope, server, wakeIdle }: HooksOptions, io: ProgramIO): HookPlan {
  const name = oneOf('--client', client, CLIENT_NAMES) satisfies ClientName
  if (wakeIdle === true && HOOK_CLIENTS[name].wakeArgs === undefined) {
    throw new InvalidSettingError('--wake-idle', wakeIdle, `no value with --client ${name}`)
  }
  return planOf({
    client: name,
    wakesIdle: wakeIdle,
    scope: oneOf('--scope', scope, SCOPES),
    folder: cwd(),
    env: io.env,
    command: ownCommand(),
    server,
  })
}

function oneOf<Name extends string>(option: string, given: string, names: readonly Name[]): Name {
  const found = names.find((name) => name === given)
  if (found === undefined) throw new InvalidSettingError(option, given, names.join(', '))
  return found
}

function readAction(options: HooksOptions): Action {
  const chosen = ACTIONS.filter((name) => options[name] === true)
  const [first = 'print', second] = chosen
  if (second === undefined) return first
  throw new InvalidSettingError(`--${second}`, true, `no value with --${first}`)
}
