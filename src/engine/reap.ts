/** Ends the processes that a program of a dead host has left. Only processes that verifiably belong to the program are signalled. */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'
import { stateOf, type ProgramIdentity } from '../process-identity.js'
import { membersOf } from './group-members.js'

/** The environment variable that marks the processes of one run. */
export const RUN_TOKEN = 'AGENT_TASKS_RUN'

/** A program that was started as the leader of a process group, with `RUN_TOKEN` in its environment. */
export interface StartedProgram {
  /** The leader of its group. */
  readonly identity: ProgramIdentity
  /** The value of `RUN_TOKEN`. */
  readonly token: string
}

/**
 * Whether the leader of a program is running: the process has the stored start time and boot id and, on Linux, the token in its environment. A
 * manipulated store can therefore not name a foreign process.
 */
export function leads({ identity, token }: StartedProgram): boolean {
  // A signal to the group of pid 1 would go to every process.
  if (identity.pid <= 1 || stateOf(identity) !== 'alive') return false
  return nodePlatform !== 'linux' || hasToken(identity.pid, token)
}

/** Signals the group of a program if its leader is running. Returns whether it did. */
export function signalProgram(program: StartedProgram, name: NodeJS.Signals): boolean {
  return leads(program) && signal(-program.identity.pid, name)
}

/**
 * Kills the group of a program: as a whole while its leader is running, otherwise member by member, identified by the token in their environment.
 * @returns how many groups and processes were signalled
 */
export function reapProgram(program: StartedProgram): number {
  if (signalProgram(program, 'SIGKILL')) return 1
  return markedMembers(program).filter((pid) => signal(pid, 'SIGKILL')).length
}

/** Whether any process of a program is left. */
export const isLeft = (program: StartedProgram): boolean => leads(program) || markedMembers(program).length > 0

/** The processes of the group that have the token. Without /proc they cannot be distinguished from those of another group. */
const markedMembers = ({ identity, token }: StartedProgram): number[] =>
  nodePlatform === 'linux' ? membersOf(identity.pid).filter((pid) => hasToken(pid, token)) : []

/** Reads the environment with which a process was started, see proc(5). The environment of another user's process cannot be read. */
function hasToken(pid: number, token: string): boolean {
  if (token === '') return false
  try {
    const environment = nodeBuiltin('node:fs').readFileSync(`/proc/${pid}/environ`, 'latin1')
    return environment.split('\0').includes(`${RUN_TOKEN}=${token}`)
  } catch {
    return false
  }
}

function signal(target: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(target, name)
    return true
  } catch {
    // ESRCH: the process has just ended. EPERM: it runs as another user.
    return false
  }
}

/** Reads a program that `RunDurability.saveProgram` stored; undefined for any other value. */
export function toStartedProgram(saved: unknown): StartedProgram | undefined {
  const { identity, token } = (saved ?? {}) as {
    readonly identity?: Partial<ProgramIdentity>
    readonly token?: unknown
  }
  const { pid, start, boot } = identity ?? {}
  if (!Number.isSafeInteger(pid) || (pid ?? 0) <= 1) return undefined
  if (typeof start !== 'string' || typeof boot !== 'string' || typeof token !== 'string') return undefined
  return { identity: { pid: pid ?? 0, start, boot }, token }
}
