/** The processes of a process group. Linux: proc(5); other systems: ps(1). */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'

/** How many processes of a group run. */
export function countMembers(group: number): number {
  try {
    process.kill(-group, 0)
  } catch (error) {
    // Usually none is left. EPERM: those that are left run as another user.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 0
  }
  return membersOf(group).length
}

/** The ids of the processes of a group that run; those that have ended and were not waited for are left out. */
export function membersOf(group: number): number[] {
  const all = nodePlatform === 'linux' ? listProcesses() : askPs()
  return all.filter((one) => one.group === group && !/^[ZX]/.test(one.state)).map(({ pid }) => pid)
}

interface ListedProcess {
  readonly pid: number
  readonly state: string
  readonly group: number
}

function listProcesses(): ListedProcess[] {
  const { readdirSync, readFileSync } = nodeBuiltin('node:fs')
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      // The name of the program, in parentheses, may have any characters.
      const [state = '', , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return [{ pid: Number(name), state, group: Number(group) }]
    } catch {
      // It has ended meanwhile.
      return []
    }
  })
}

function askPs(): ListedProcess[] {
  const { spawnSync } = nodeBuiltin('node:child_process')
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,stat=,pgid='], { encoding: 'utf8' })
  return stdout.split('\n').map((line) => {
    const [pid, state = '', group] = line.trim().split(/\s+/)
    return { pid: Number(pid), state, group: Number(group) }
  })
}
