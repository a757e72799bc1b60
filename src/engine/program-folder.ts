/**
 * The folder of a program that survives its host. It contains the program's output and how it ended. The identity of the program is in the store,
 * because the program can write to its folder. `surviving-script.ts` lists the files.
 */
import { nodeBuiltin } from '../node-builtins.js'
import { ageOf } from '../process-identity.js'
import { leads, reapProgram, type StartedProgram } from './reap.js'
import { readRegular } from '../regular-file.js'
import { lastChars } from '../text/cut-text.js'

/** The maximum length of an exit code, in bytes. */
const EXIT_BYTES = 16

/** The maximum length of a system uptime, in bytes. */
const UPTIME_BYTES = 32

/** The exit code that the script has written; undefined while the program runs. */
export const readExit = (folder: string): string | undefined => readRegular(`${folder}/exit`, EXIT_BYTES)

/** Whether a program can be followed to its end: it is running, or its exit code is known. */
export function canFollow(folder: string, program: StartedProgram | undefined): boolean {
  if (program === undefined || !nodeBuiltin('node:fs').existsSync(folder)) return false
  // The order matters: when the program no longer runs, its script has written the exit code.
  return leads(program) || readExit(folder) !== undefined
}

/**
 * How long a program has run (until now or until its end), in ms, independent of changes to the system time. Undefined where the system does not
 * provide it.
 */
export function runTime(folder: string, { identity }: StartedProgram): number | undefined {
  const age = ageOf(identity)
  const text = readRegular(`${folder}/uptime`, UPTIME_BYTES)
  if (age === undefined || text === undefined || !/^\d+\.\d+\n$/.test(text)) return age
  // The program can write to this file, so the value is capped at the time until now.
  return Math.min(ageOf(identity, Number(text) * 1000) ?? age, age)
}

/** The last characters of the program's stdout; `''` if there is none. */
export function lastOutput(folder: string, maxChars: number): string {
  // A character has at most four bytes.
  const read = (name: string): string => readRegular(`${folder}/${name}`, 4 * maxChars, 'end') ?? ''
  // `stdout.tail` is written when the output is complete.
  return lastChars(read('stdout.tail') || read('stdout'), maxChars).trim()
}

/** Ends a program that is no longer followed, and removes its files. Has no effect if the folder does not exist. */
export function endSurvivor(folder: string, program: StartedProgram | undefined): void {
  const { existsSync, rmSync } = nodeBuiltin('node:fs')
  if (!existsSync(folder)) return
  if (program !== undefined) reapProgram(program)
  // A script that was just killed may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 })
}
