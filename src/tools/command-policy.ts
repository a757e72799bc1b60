/** Decides which programs a model may start, in which folders, and with which environment variables. */
import { boundLines } from '../features/output/bounded-text.js'
import { InvalidInputError } from '../errors.js'
import { isNode, nodeBuiltin } from '../system/node-builtins.js'
import {
  aBoolean,
  accepts,
  aName,
  anything,
  aText,
  custom,
  integerFrom,
  listOf,
  orMinusOne,
  someOf,
  withDefault,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { isWithin } from '../system/regular-file.js'
import { findProgram } from '../runners/find-program.js'

/** The programs that a model may start. An allowed program is not confined: it may start any other program. */
export interface CommandPolicy {
  /**
   * The programs. Each is a name to look up in the PATH of this process, or an absolute path. The `command` of a call must be exactly one of these
   * texts. Required, unless `shell` is true.
   */
  readonly allow?: readonly string[]
  /** Whether a call gives a command line instead of a program. `/bin/sh -c` runs the line, which can start any program. Default false. */
  readonly shell?: boolean
  /**
   * The names of the environment variables that a call may set. A program also gets the variables of this process. Default: a call may set no variables.
   */
  readonly env?: readonly string[]
  /**
   * The folders in which a call may start a program, including their subfolders. A call without `cwd` uses the first folder. Default: the working
   * directory of this process.
   */
  readonly cwd?: string | readonly string[]
  /** The deadline of calls that request none, in seconds; -1 for no deadline. Default: as for the other tools; in the background, no deadline. */
  readonly defaultTimeoutSeconds?: number
  /**
   * The maximum deadline of a call, in seconds; -1 for no maximum. Longer deadlines are reduced to it. Default: as for the other tools; in the
   * background, no maximum.
   */
  readonly maxTimeoutSeconds?: number
}

const aProgram = custom(
  'the name of a program in PATH, or a normal absolute path',
  (value) => typeof value === 'string' && isProgram(value),
)

const folders = custom(
  'a folder, or an array of folders',
  (value) => accepts(aName, value) || accepts(someOf(aName), value),
)

export const commandPolicyTypes = {
  allow: listOf(aProgram),
  shell: withDefault(aBoolean, false),
  env: listOf(aText('the name of a variable', /^[^=\0]+$/)),
  cwd: folders,
  // `timeoutPolicy` checks this value, which may also be a function.
  defaultTimeoutSeconds: anything,
  maxTimeoutSeconds: orMinusOne(integerFrom(1), 'an integer >= 1, or -1 for no limit'),
} satisfies OptionTypes<CommandPolicy>

/** @throws INVALID_INPUT if neither or both of `allow` and `shell` are set */
export function checkCommandPolicy({ allow, shell }: CommandPolicy, path: string): void {
  if (shell === true && allow !== undefined) {
    throw new InvalidInputError(`${path}.allow`, allow, 'nothing with shell: true, which can start any program')
  }
  if (shell !== true && allow === undefined) throw new InvalidInputError(`${path}.allow`, allow, 'an array of programs')
}

function isProgram(name: string): boolean {
  if (name === '' || name.includes('\0') || name === '.' || name === '..') return false
  if (!/[\\/]/.test(name)) return true
  if (!isNode) return true
  const path = nodeBuiltin('node:path')
  return path.isAbsolute(name) && path.normalize(name) === name && !name.endsWith('/')
}

/** The part of a call that says what to run. */
export interface CommandRequest {
  readonly command: string
  readonly args?: readonly string[] | undefined
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** The program to start, after all checks. */
export interface AllowedCommand {
  readonly argv: readonly [string, ...string[]]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Why a call is refused: its field, the value that came, and what was expected. */
export interface CommandRefusal {
  readonly field: string
  readonly received: unknown
  readonly expected: string
}

/**
 * The maximum length of the command, its arguments and its variables together, in characters. It is limited because the record of the task keeps the
 * command.
 */
const MAX_TEXT_CHARS = 65_536

/** The maximum length of a list of names in an error or a description, in characters. */
const NAMES_CHARS = 1000

export function allowedCommand(policy: CommandPolicy, request: CommandRequest): AllowedCommand | CommandRefusal {
  const { allow = [] } = policy
  const shell = policy.shell === true
  const { command, args = [], env = {} } = request
  if (!shell && !allow.includes(command)) {
    return { field: 'params.command', received: command, expected: `one of ${namesOf(allow)}` }
  }
  const size = [command, ...args, ...Object.values(env)].reduce((sum, text) => sum + text.length, 0)
  if (size > MAX_TEXT_CHARS) {
    const expected = `a command, arguments and variables of at most ${MAX_TEXT_CHARS} characters together`
    return { field: 'params', received: size, expected }
  }
  const unknown = Object.keys(env).find((name) => policy.env?.includes(name) !== true)
  if (unknown !== undefined) {
    const expected = policy.env === undefined ? 'no variables' : `only the variables ${namesOf(policy.env)}`
    return { field: 'params.env', received: unknown, expected }
  }
  const folder = allowedFolder(policy, request.cwd)
  if ('expected' in folder) return folder
  return { argv: shell ? ['/bin/sh', '-c', command] : [command, ...args], cwd: folder.cwd, env }
}

export function namesOf(names: readonly string[]): string {
  return names.length === 0
    ? 'none'
    : boundLines(
        names.map((name) => JSON.stringify(name)),
        NAMES_CHARS,
      ).replaceAll('\n', ', ')
}

function allowedFolder(policy: CommandPolicy, asked: string | undefined): { readonly cwd: string } | CommandRefusal {
  const path = nodeBuiltin('node:path')
  const roots = rootsOf(policy)
  const cwd = realFolder(path.resolve(roots[0] ?? '.', asked ?? '.'))
  if (cwd === undefined) return { field: 'params.cwd', received: asked ?? roots[0], expected: 'a folder that exists' }
  return roots.some((root) => isWithin(realFolder(root) ?? root, cwd))
    ? { cwd }
    : { field: 'params.cwd', received: asked, expected: `a folder within ${namesOf(roots)}` }
}

function rootsOf({ cwd = '.' }: CommandPolicy): readonly string[] {
  const path = nodeBuiltin('node:path')
  return (typeof cwd === 'string' ? [cwd] : cwd).map((folder) => path.resolve(folder))
}

/** The real path of a folder; undefined if it does not exist. */
function realFolder(path: string): string | undefined {
  const { realpathSync, statSync } = nodeBuiltin('node:fs')
  try {
    const real = realpathSync(path)
    return statSync(real).isDirectory() ? real : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the path of an allowed program. A name is looked up only in absolute folders of the PATH of this process. So the variables and the working
 * directory of a call cannot substitute another program.
 * @throws ProcessError when the program is not found
 */
export function programPath(command: string): string {
  const path = nodeBuiltin('node:path')
  const folders = (process.env['PATH'] ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder))
  return findProgram(command, { env: { PATH: folders.join(path.delimiter) } })
}
