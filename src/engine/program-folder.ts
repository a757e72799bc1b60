/**
 * The folder of a program that survives its host: what it has written, and how it has ended. Who the program is stands in the store, because the
 * program can write to its folder. `surviving-script.ts` of the runners lists the files.
 */
import { nodeBuiltin } from '../node-builtins.js'
import { ageOf } from '../process-identity.js'
import { leads, reapProgram, type StartedProgram } from './reap.js'
import { readRegular } from '../regular-file.js'
import { lastChars } from '../text/cut-text.js'

/** The longest exit code, in bytes. */
const EXIT_BYTES = 16

/** The longest time since the boot of a system, in bytes. */
const UPTIME_BYTES = 32

/** What a script has written about the end of its program; undefined before that. */
export const readExit = (folder: string): string | undefined => readRegular(`${folder}/exit`, EXIT_BYTES)

/** Whether a program can be followed to its end: it lives, or has said how it ended. */
export function canFollow(folder: string, program: StartedProgram | undefined): boolean {
  if (program === undefined || !nodeBuiltin('node:fs').existsSync(folder)) return false
  // In this order: a script that has ended has written its exit code.
  return leads(program) || readExit(folder) !== undefined
}

/**
 * How long a program has run, in ms, whatever the clock on the wall was set to: until now, or until its end. Undefined where the system cannot tell.
 */
export function runTime(folder: string, { identity }: StartedProgram): number | undefined {
  const age = ageOf(identity)
  const text = readRegular(`${folder}/uptime`, UPTIME_BYTES)
  if (age === undefined || text === undefined || !/^\d+\.\d+\n$/.test(text)) return age
  // The program can write to this file: it cannot have run for longer than until now.
  return Math.min(ageOf(identity, Number(text) * 1000) ?? age, age)
}

/** The end of what a program has written to its stdout; `''` where there is nothing. */
export function lastOutput(folder: string, maxChars: number): string {
  // A character has at most four bytes.
  const read = (name: string): string => readRegular(`${folder}/${name}`, 4 * maxChars, 'end') ?? ''
  // The file with the end is written when the output is complete.
  return lastChars(read('stdout.tail') || read('stdout'), maxChars).trim()
}

/** Ends a program that nobody follows any longer, and removes its files. Does nothing where there is no such folder. */
export function endSurvivor(folder: string, program: StartedProgram | undefined): void {
  const { existsSync, rmSync } = nodeBuiltin('node:fs')
  if (!existsSync(folder)) return
  if (program !== undefined) reapProgram(program)
  // A script that has just been killed may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 })
}
