/** Ends what a program left whose host has died. Only processes that are proved to be its own are signalled. */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'
import { stateOf, type ProgramIdentity } from '../process-identity.js'

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
 * Kills the group of a program: as a whole while its leader lives, and otherwise its members one by one, by the token in their environment.
 * @returns how many groups and processes were signalled
 */
export function reapProgram({ identity, token }: StartedProgram): number {
  const state = stateOf(identity)
  if (state === 'alive') return kill(-identity.pid)
  if (token === '') return 0
  // Without /proc the members of a group whose leader is gone cannot be told from those of another.
  if (nodePlatform !== 'linux') return 0
  return membersOf(identity.pid, token).reduce((count, pid) => count + kill(pid), 0)
}

/** Whether anything of a program is left. */
export function isLeft({ identity, token }: StartedProgram): boolean {
  if (stateOf(identity) === 'alive') return true
  return nodePlatform === 'linux' && token !== '' && membersOf(identity.pid, token).length > 0
}

function membersOf(group: number, token: string): number[] {
  const { readdirSync, readFileSync } = nodeBuiltin('node:fs')
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
        const [, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        if (Number(processGroup) !== group) return false
        return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${RUN_TOKEN}=${token}`)
      } catch {
        // It has ended meanwhile, or belongs to another user.
        return false
      }
    })
    .map(Number)
}

function kill(target: number): number {
  try {
    process.kill(target, 'SIGKILL')
    return 1
  } catch {
    return 0
  }
}

/** Reads what `RunDurability.save` stored of a program; undefined for anything else. */
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
