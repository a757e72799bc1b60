/**
 * The folder of a program that survives its host: who the program is, and whether it was started at all. `surviving-script.ts` of the runners
 * lists the files in it.
 */
import { nodeBuiltin } from '../node-builtins.js'
import { stateOf, type ProgramIdentity } from './program-identity.js'

/** What became of the start of a program. */
export type StartState =
  | { readonly type: 'started'; readonly identity: ProgramIdentity }
  /** It has not started, and never will. */
  | { readonly type: 'revoked' }

/** Finds out whether a program was started; if it was not, it never will be. */
export function findOrRevoke(folder: string): StartState {
  const { linkSync, writeFileSync } = nodeBuiltin('node:fs')
  const found = readStart(folder)
  if (found !== undefined) return found
  const revocation = `${folder}/revoked`
  writeFileSync(revocation, 'revoked\n')
  try {
    linkSync(revocation, `${folder}/identity`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readStart(folder) ?? { type: 'revoked' }
}

/** Who the program is; undefined while it is being started. */
export function readStart(folder: string): StartState | undefined {
  const text = readText(`${folder}/identity`)
  if (text === undefined) return undefined
  const [pid, start, boot] = text.split('\n')
  if (start === undefined || boot === undefined || !/^\d+$/.test(pid ?? '')) return { type: 'revoked' }
  return { type: 'started', identity: { pid: Number(pid), start, boot } }
}

/** Signals the group of a program, if it is the one that was started. */
export function signalGroup(folder: string, name: NodeJS.Signals): void {
  const started = readStart(folder)
  if (started?.type !== 'started' || stateOf(started.identity) !== 'alive') return
  try {
    process.kill(-started.identity.pid, name)
  } catch {
    // ESRCH: it has just ended.
  }
}

/** The text of a file; undefined where there is none. */
export function readText(file: string): string | undefined {
  try {
    return nodeBuiltin('node:fs').readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** A program that has not started by now never will. Does nothing where it has started, or its folder is gone. */
export function revokeStart(folder: string): void {
  try {
    findOrRevoke(folder)
  } catch {
    // Its files were removed: nobody follows it any longer.
  }
}

/** Ends a program whose task has ended, and removes its files. Does nothing where there is no such folder. */
export function endSurvivor(folder: string): void {
  const { existsSync, rmSync } = nodeBuiltin('node:fs')
  if (!existsSync(folder)) return
  if (findOrRevoke(folder).type === 'started') signalGroup(folder, 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
