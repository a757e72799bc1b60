/** Finds the file of a program as the system does, without starting the program. */
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'

export interface LookupOptions {
  /** The working directory of the program, from which relative paths in `command` start. */
  readonly cwd: string
  /** The environment of the program. `PATH` is used, and on Windows `PATHEXT`. */
  readonly env: Readonly<Record<string, string | null | undefined>>
}

/** @returns the path of the executable file; undefined when there is no such file */
export function findProgram(command: string, { cwd, env }: LookupOptions): string | undefined {
  const isWindows = process.platform === 'win32'
  const isPath = command.includes('/') || (isWindows && command.includes('\\'))
  // On Windows the names of variables are case-insensitive, but not in a copy of `process.env`.
  const variable = (name: string): string | null | undefined =>
    env[name] ?? (isWindows ? Object.entries(env).find(([other]) => other.toUpperCase() === name)?.[1] : undefined)
  const folders = isPath ? [''] : (variable('PATH') ?? '').split(delimiter)
  const endings = isWindows ? ['', ...(variable('PATHEXT') ?? '.EXE;.CMD;.BAT;.COM').split(';')] : ['']
  return folders
    .flatMap((folder) => endings.map((ending) => resolve(cwd, folder, command + ending)))
    .find(isExecutableFile)
}

function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
