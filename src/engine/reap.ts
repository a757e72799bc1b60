/** Ends the processes that a program of a dead host has left. Signals go only to processes that certainly belong to the program. */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'
import { stateOf, type ProgramIdentity } from '../process-identity.js'
import { membersOf } from './group-members.js'

/** The environment variable with the token of a run. The processes of the run inherit it and are identified by it. */
export const RUN_TOKEN = 'AGENT_TASKS_RUN'

/** A program that was started as the leader of a process group, with `RUN_TOKEN` in its environment. */
export interface StartedProgram {
  /** The identity of the program, which is the leader of its process group. */
  readonly identity: ProgramIdentity
  /** The value of `RUN_TOKEN` for this run. */
  readonly token: string
}

/**
 * Whether the program itself is running: the process has the stored start time and boot id and, on Linux, the token in its environment. So a
 * manipulated store cannot make this process kill a foreign process.
 */
export function leads({ identity, token }: StartedProgram): boolean {
  // With pid 1, a signal to the group (pid -1) would go to every process of the system.
  if (identity.pid <= 1 || stateOf(identity) !== 'alive') return false
  return nodePlatform !== 'linux' || hasToken(identity.pid, token)
}

/** Sends a signal to the process group of a program if the program is running. Returns whether the signal was sent. */
export function signalProgram(program: StartedProgram, name: NodeJS.Signals): boolean {
  return leads(program) && signal(-program.identity.pid, name)
}

/**
 * Kills the processes of a program. While the program itself is running, its whole group is killed. After that, only those processes of the group are
 * killed that have the token in their environment.
 * @returns how many signals were sent, to a group or a process
 */
export function reapProgram(program: StartedProgram): number {
  if (signalProgram(program, 'SIGKILL')) return 1
  return markedMembers(program).filter((pid) => signal(pid, 'SIGKILL')).length
}

/** Whether the program or any process of its group with its token is running. */
export const isLeft = (program: StartedProgram): boolean => leads(program) || markedMembers(program).length > 0

/**
 * Returns the ids of the processes in the group that have the token. Without /proc, which only Linux has, it returns none: the group may belong to
 * another program by now.
 */
const markedMembers = ({ identity, token }: StartedProgram): number[] =>
  nodePlatform === 'linux' ? membersOf(identity.pid).filter((pid) => hasToken(pid, token)) : []

/**
 * Checks the environment with which a process was started, see proc(5). Returns false for a process of another user, whose environment cannot be read.
 */
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
    // ESRCH: the process has just ended. EPERM: the process runs as another user.
    return false
  }
}

/** Converts what `RunDurability.saveProgram` has stored; undefined for any other value. */
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
