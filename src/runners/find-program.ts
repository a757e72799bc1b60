/** Finds a program as the system does: a path is used directly, a name is looked up in the folders of PATH. */
import { nodeBuiltin } from '../system/node-builtins.js'
import { startError, type StartAttempt } from './start-error.js'

/**
 * Returns the path of the program that would be started.
 * @throws ProcessError `PROCESS_NOT_STARTED` when there is none
 */
export function findProgram(command: string, attempt: Omit<StartAttempt, 'command'>): string {
  const path = nodeBuiltin('node:path')
  const directory = path.resolve(attempt.cwd ?? '.')
  const candidates = command.includes('/')
    ? [path.resolve(directory, command)]
    : (attempt.env['PATH'] ?? '').split(path.delimiter).map((folder) => path.resolve(directory, folder, command))
  let code = 'ENOENT'
  for (const candidate of candidates) {
    const refusal = refusalOf(candidate)
    if (refusal === undefined) return candidate
    if (refusal === 'EACCES') code = refusal
  }
  throw startError(Object.assign(new Error(code), { code }), { ...attempt, command })
}

function refusalOf(path: string): 'ENOENT' | 'EACCES' | undefined {
  const { accessSync, statSync, constants } = nodeBuiltin('node:fs')
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return 'ENOENT'
  try {
    accessSync(path, constants.X_OK)
    return undefined
  } catch {
    return 'EACCES'
  }
}
