/**
 * The folder of a program that survives its host. It contains the output and the exit code of the program (`surviving-script.ts` lists the files). The
 * identity of the program is not in the folder but in the store, because the program could overwrite it in the folder.
 */
import { nodeBuiltin } from '../system/node-builtins.js'
import { ageOf } from '../system/process-identity.js'
import { leads, reapProgram, type StartedProgram } from './reap.js'
import { readRegular } from '../system/regular-file.js'
import { lastChars } from '../data/cut-text.js'

/** The maximum number of bytes of an exit code that are read. */
const EXIT_BYTES = 16

/** The maximum number of bytes of a system uptime that are read. */
const UPTIME_BYTES = 32

/** Returns the exit code that the script around the program has written; undefined while the program runs. */
export const readExit = (folder: string): string | undefined => readRegular(`${folder}/exit`, EXIT_BYTES)

/** Whether a program can be followed to its end: it is running, or its exit code is known. */
export function canFollow(folder: string, program: StartedProgram | undefined): boolean {
  if (program === undefined || !nodeBuiltin('node:fs').existsSync(folder)) return false
  // Do not swap the two checks. A program that has ended before the first check has its exit code written by then, so the second check finds it.
  return leads(program) || readExit(folder) !== undefined
}

/** Whether the host of a program died before it let the program start. What the program had to do is not done then. */
export const isUnstarted = (folder: string): boolean => nodeBuiltin('node:fs').existsSync(`${folder}/unstarted`)

/**
 * Returns how long a program has run, until now or until its end, in ms. Does not depend on the system time, which may have been set. Returns
 * undefined where the system does not provide the age of processes.
 */
export function runTime(folder: string, { identity }: StartedProgram): number | undefined {
  const age = ageOf(identity)
  const text = readRegular(`${folder}/uptime`, UPTIME_BYTES)
  if (age === undefined || text === undefined || !/^\d+\.\d+\n$/.test(text)) return age
  // The program could write a false value to this file, so the result is at most the time until now.
  return Math.min(ageOf(identity, Number(text) * 1000) ?? age, age)
}

/** Returns the last characters of the program's stdout; `''` if there is no output. */
export function lastOutput(folder: string, maxChars: number): string {
  // The maximum size of a character in UTF-8 is four bytes.
  const read = (name: string): string => readRegular(`${folder}/${name}`, 4 * maxChars, 'end') ?? ''
  // The script writes `stdout.tail` when the program has ended. Until then `stdout` has the output.
  return lastChars(read('stdout.tail') || read('stdout'), maxChars).trim()
}

/** Ends a program that nobody follows any more, and removes its files. Has no effect if the folder does not exist. */
export function endSurvivor(folder: string, program: StartedProgram | undefined): void {
  const { existsSync, rmSync } = nodeBuiltin('node:fs')
  if (!existsSync(folder)) return
  if (program !== undefined) reapProgram(program)
  // The script may still write files in the moment in which it is killed, so the removal is tried several times.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 })
}
