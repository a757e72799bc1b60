/** Explains why a program did not start. The system's message does not distinguish a missing program from a missing working directory. */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { nodeBuiltin } from '../system/node-builtins.js'
import { preview } from '../data/preview.js'
import type { CapturedOutput } from './captured-output.js'
import { ProcessError } from './process-error.js'
import type { ProgramEnd } from './supervision.js'

export interface StartAttempt {
  readonly command: string
  readonly cwd?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Creates an error that says why the program did not start, and how to fix it. */
export function startError(cause: unknown, attempt: StartAttempt): ProcessError {
  const { command } = attempt
  const message = `Command ${preview(command)} did not start: ${describeRefusal(cause, attempt)}`
  return new ProcessError('PROCESS_NOT_STARTED', message, { command }, { cause })
}

/** The name of the shells that start programs of stored tasks. The messages of the shell itself begin with this name. */
export const SHELL_NAME = 'agent-tasks'

/**
 * Starts a shell that will execute a program.
 * @throws ProcessError when the start fails immediately; other failures are emitted as `error`
 */
export function spawnShell(args: readonly string[], attempt: StartAttempt, options: SpawnOptions): ChildProcess {
  try {
    return nodeBuiltin('node:child_process').spawn('/bin/sh', args, options)
  } catch (cause) {
    throw startError(cause, attempt)
  }
}

/** The line that a shell prints if it cannot execute its program. There is no other output then. */
const SHELL_REFUSAL = new RegExp(`^${SHELL_NAME}: [^\\n]*\\n$`)

/** The exit codes of a shell whose `exec` fails (POSIX, Shell Command Language, exec). */
const REFUSALS: ReadonlyMap<number | null, string> = new Map([
  [126, 'EACCES'],
  [127, 'ENOENT'],
])

/** Returns the error if the shell could not execute the program; undefined if it could. */
export function shellStartError(
  { exitCode, stop }: ProgramEnd,
  { stdout, stderr }: Pick<CapturedOutput, 'stdout' | 'stderr'>,
  attempt: StartAttempt,
): ProcessError | undefined {
  const code = REFUSALS.get(exitCode)
  if (code === undefined || stop !== undefined || stdout().text !== '') return undefined
  const { text } = stderr()
  return SHELL_REFUSAL.test(text) ? startError(Object.assign(new Error(text.trim()), { code }), attempt) : undefined
}

function describeRefusal(cause: unknown, { command, cwd, env }: StartAttempt): string {
  const { code = 'no code', message } = cause as NodeJS.ErrnoException
  const directory = cwd === undefined ? 'directory' : kindOf(cwd)
  if (directory !== 'directory') {
    const problem = directory === 'file' ? 'is not a directory' : 'does not exist'
    return `its working directory ${JSON.stringify(cwd)} ${problem} (${code}).`
  }
  switch (code) {
    case 'ENOENT':
      if (!/[\\/]/.test(command)) return describeSearch(env['PATH'] ?? '')
      return kindOf(nodeBuiltin('node:path').resolve(cwd ?? '.', command)) === 'file'
        ? 'the file is there, but the interpreter that its first line names is not (ENOENT).'
        : 'there is no such file (ENOENT). A relative path starts at the working directory.'
    case 'EACCES':
      return 'it may not be executed (EACCES). Is it a file, and is it executable?'
    case 'E2BIG':
      return 'its arguments and environment are too long (E2BIG). On Linux one argument has at most 131071 bytes. A goal may be longer with stdin: "goal" or {goal:file}.'
    default:
      return message
  }
}

function describeSearch(path: string): string {
  const where = path === '' ? 'PATH is empty' : 'no directory in PATH has it'
  return `it was not found (ENOENT): ${where}. Install it, or give its full path.`
}

function kindOf(path: string): 'directory' | 'file' | 'missing' {
  try {
    return nodeBuiltin('node:fs').statSync(path).isDirectory() ? 'directory' : 'file'
  } catch {
    return 'missing'
  }
}
