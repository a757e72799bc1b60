/**
 * The folder of a program that survives its host: who the program is, and whether it was started at all. `surviving-script.ts` of the runners
 * lists the files in it.
 */
import { nodeBuiltin } from '../node-builtins.js'
import { stateOf } from '../process-identity.js'
import { reapProgram, type StartedProgram } from './reap.js'

/** What became of the start of a program. */
export type StartState =
  /** `token` marks its processes; `''` if nothing does. */
  | ({ readonly type: 'started' } & StartedProgram)
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
  const [pid, start, boot, token = ''] = text.split('\n')
  if (start === undefined || boot === undefined || !/^\d+$/.test(pid ?? '')) return { type: 'revoked' }
  return { type: 'started', identity: { pid: Number(pid), start, boot }, token }
}

/** Signals the group of a program, if it is the one that was started. */
export function signalGroup(started: StartState | undefined, name: NodeJS.Signals): void {
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

/** Whether a program can be followed to its end: it lives, or has said how it ended. If it has not started, it never will. */
export function canFollow(folder: string): boolean {
  const { existsSync } = nodeBuiltin('node:fs')
  if (!existsSync(folder)) return false
  const start = findOrRevoke(folder)
  // In this order: a script that has ended has written its exit code.
  return start.type === 'started' && (stateOf(start.identity) === 'alive' || existsSync(`${folder}/exit`))
}

/** The end of what a program has written to its stdout; `''` where there is nothing. */
export function lastOutput(folder: string, maxChars: number): string {
  const text = `${readText(`${folder}/stdout`) ?? ''}${readText(`${folder}/stdout.tail`) ?? ''}`
  // Not from the middle of a surrogate pair.
  return text
    .slice(-maxChars)
    .replace(/^[\uDC00-\uDFFF]/, '')
    .trim()
}

/**
 * Ends a program whose task has ended, and removes its files. Does nothing where there is no such folder.
 * @returns the program, if it was started
 */
export function endSurvivor(folder: string): StartedProgram | undefined {
  const { existsSync, rmSync } = nodeBuiltin('node:fs')
  if (!existsSync(folder)) return undefined
  const start = findOrRevoke(folder)
  if (start.type === 'started') reapProgram(start)
  // A script that has just been killed may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 })
  return start.type === 'started' ? start : undefined
}
