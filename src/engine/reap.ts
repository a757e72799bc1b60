/** Ends what a program left whose host has died. Only processes that are proved to be its own are signalled. */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'
import { stateOf, type ProgramIdentity } from '../process-identity.js'
import { membersOf } from './group-members.js'

/** The variable that marks the processes of one run. */
export const RUN_TOKEN = 'AGENT_TASKS_RUN'

/** A program that was started with `RUN_TOKEN` in its environment, as the leader of a process group. */
export interface StartedProgram {
  /** The leader of its group. */
  readonly identity: ProgramIdentity
  /** The value of `RUN_TOKEN` in its environment. */
  readonly token: string
}

/**
 * Whether the leader of a program runs: the process has the stored start and boot and, on Linux, the token in its environment.
 * A store that was tampered with cannot name a process of somebody else.
 */
export function leads({ identity, token }: StartedProgram): boolean {
  // A signal to the group of pid 1 would go to every process.
  if (identity.pid <= 1 || stateOf(identity) !== 'alive') return false
  return nodePlatform !== 'linux' || hasToken(identity.pid, token)
}

/** Signals the group of a program, if its leader runs. Returns whether it was signalled. */
export function signalProgram(program: StartedProgram, name: NodeJS.Signals): boolean {
  return leads(program) && signal(-program.identity.pid, name)
}

/**
 * Kills the group of a program: as a whole while its leader lives, and otherwise its members one by one, by the token in their environment.
 * @returns how many groups and processes were signalled
 */
export function reapProgram(program: StartedProgram): number {
  if (signalProgram(program, 'SIGKILL')) return 1
  return markedMembers(program).filter((pid) => signal(pid, 'SIGKILL')).length
}

/** Whether anything of a program is left. */
export const isLeft = (program: StartedProgram): boolean => leads(program) || markedMembers(program).length > 0

/** The processes of the group that have the token. Without /proc they cannot be told from those of another group. */
const markedMembers = ({ identity, token }: StartedProgram): number[] =>
  nodePlatform === 'linux' ? membersOf(identity.pid).filter((pid) => hasToken(pid, token)) : []

/** proc(5): the environment that a process was started with. That of another user's process cannot be read. */
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
    // ESRCH: it has just ended. EPERM: it runs as another user.
    return false
  }
}

/** Reads what `RunDurability.saveProgram` stored of a program; undefined for anything else. */
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
