/**
 * Runs git on untrusted repositories. No program that a repository names is executed: no hook, no file-system monitor, no transport, and no filter of
 * the repository's own configuration. Filters of the user's configuration, such as Git LFS, do run.
 *
 * A program may change the configuration of its repository while it runs. So filters are looked up before each command that may use one.
 */
import { AgentTasksError } from '../../errors.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { toOneLine } from '../../data/control-characters.js'
import { lastChars } from '../../data/cut-text.js'

/** The maximum size of the output of a git command, in bytes. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** How much of git's output an error includes, in characters. */
const SHOWN_CHARS = 1000

/** Environment variables that would direct git to another repository (`git rev-parse --local-env-vars`), and variables that contain configuration. */
const LOCAL_VARIABLE =
  /^GIT_(ALTERNATE_OBJECT_DIRECTORIES|CEILING_DIRECTORIES|COMMON_DIR|CONFIG|CONFIG_(COUNT|PARAMETERS|KEY_\d+|VALUE_\d+)|DIR|GRAFT_FILE|IMPLICIT_WORK_TREE|INDEX_FILE|NAMESPACE|NO_REPLACE_OBJECTS|OBJECT_DIRECTORY|PREFIX|REPLACE_REF_BASE|SHALLOW_FILE|WORK_TREE)$/

/** Settings for every command, as the option `-c` of git sets them. */
const SETTINGS: readonly Setting[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['submodule.recurse', 'false'],
]

type Setting = readonly [name: string, value: string]

/** Where a command runs: in the repository of `folder`, or in the repository that `gitDir` names. */
export interface Place {
  readonly folder: string
  readonly gitDir?: string
}

/** A git command failed. */
export class GitError extends AgentTasksError {
  override readonly name = 'GitError'
  /** The exit code; null if a signal ended git. */
  readonly exitCode: number | null

  constructor(message: string, exitCode: number | null) {
    super('GIT_FAILED', message)
    this.exitCode = exitCode
  }
}

/** Returns these variables with the value undefined, so that a program in a worktree does not inherit them. */
export const withoutLocalVariables = (env: NodeJS.ProcessEnv): Record<string, undefined> =>
  Object.fromEntries(Object.keys(env).flatMap((name) => (LOCAL_VARIABLE.test(name) ? [[name, undefined]] : [])))

/**
 * Runs a git command that does not touch files of a working tree.
 * @returns its stdout
 * @throws GitError if git fails
 */
export const git = (place: Place, ...args: readonly string[]): Promise<string> => run(place, args, SETTINGS)

/**
 * Runs a git command that may apply filters to files. Filters of the repository's own configuration are disabled.
 * @throws GitError if git fails
 */
export async function gitOnFiles(place: Place, ...args: readonly string[]): Promise<string> {
  const listed = await answer(place, 'config', '--null', '--show-scope', '--name-only', '--get-regexp', '^filter[.]')
  const words = (listed ?? '').split('\0')
  const names = new Set<string>()
  for (let at = 0; at + 1 < words.length; at += 2) {
    const [scope, key = ''] = [words[at], words[at + 1]]
    if (scope !== 'system' && scope !== 'global') names.add(key.slice('filter.'.length, key.lastIndexOf('.')))
  }
  const settings = [...names].flatMap((name): Setting[] => [
    ...['clean', 'smudge', 'process'].map((field): Setting => [`filter.${name}.${field}`, '']),
    [`filter.${name}.required`, 'false'],
  ])
  return run(place, args, [...SETTINGS, ...settings])
}

/**
 * Runs a git command and returns its output, without the last line break. Returns undefined for exit code 1, with which git answers no.
 * @throws GitError for any other exit code than 0 and 1
 */
export async function answer(place: Place, ...args: readonly string[]): Promise<string | undefined> {
  try {
    return (await git(place, ...args)).replace(/\n$/, '')
  } catch (error) {
    if (error instanceof GitError && error.exitCode === 1) return undefined
    throw error
  }
}

function run({ folder, gitDir }: Place, args: readonly string[], settings: readonly Setting[]): Promise<string> {
  const path = nodeBuiltin('node:path')
  const inherited = Object.entries(process.env).filter(([name]) => !LOCAL_VARIABLE.test(name))
  const config = settings.flatMap(([name, value], index): Setting[] => [
    [`GIT_CONFIG_KEY_${index}`, name],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ])
  // Relative folders in PATH are ignored, because the working directory may contain a program named git.
  const folders = (process.env['PATH'] ?? '').split(path.delimiter).filter((one) => path.isAbsolute(one))
  const env: NodeJS.ProcessEnv = {
    ...Object.fromEntries(inherited),
    ...Object.fromEntries(config),
    PATH: folders.join(path.delimiter),
    GIT_CONFIG_COUNT: String(settings.length),
    GIT_ALLOW_PROTOCOL: ':',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    LC_ALL: 'C',
  }
  const where = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, `--work-tree=${folder}`]
  const options = { cwd: path.dirname(process.execPath), env, maxBuffer: MAX_OUTPUT_BYTES, windowsHide: true }
  return new Promise((resolve, reject) => {
    const child = nodeBuiltin('node:child_process').execFile(
      'git',
      ['--no-pager', '-C', folder, ...where, ...args],
      options,
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(toGitError(error, args[0] ?? '', stderr))
      },
    )
    child.stdin?.end()
  })
}

function toGitError({ code, message }: Error & { readonly code?: unknown }, command: string, stderr: string): GitError {
  if (code === 'ENOENT') return new GitError('git was not found: no directory in PATH has it', null)
  const said = lastChars(toOneLine(stderr.trim() === '' ? message : stderr.trim()), SHOWN_CHARS)
  return new GitError(`git ${command} failed: ${said}`, typeof code === 'number' ? code : null)
}
