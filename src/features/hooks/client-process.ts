/** Finds the process of the client that has started this server. Others may be between them, such as `npx` or a shell. */
import { readFileSync } from 'node:fs'
import { identityOf, type ProgramIdentity } from '../../system/process-identity.js'
import { readStat } from '../../system/process-stat.js'
import type { HookClient } from './hook-client.js'
import { ancestorsOf } from './hook-folder.js'

export interface FoundClient {
  readonly args: readonly string[]
  /** Undefined if the process has ended. */
  readonly identity: ProgramIdentity | undefined
}

/** Returns the nearest process above this one that runs the client; the parent if none does. Without /proc, its arguments are unknown. */
export function findClientProcess({ isProgram }: HookClient, parent = process.ppid): FoundClient {
  const above = [parent, ...ancestorsOf(parent, (pid) => readStat(pid)?.parent)]
  const pid = above.find((each) => isProgram(argumentsOf(each))) ?? parent
  return { args: argumentsOf(pid), identity: identityOf(pid) }
}

/** The command line of a process; empty if it is unknown. */
export function argumentsOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  } catch {
    return []
  }
}
