/** The processes of a process group. Linux: proc(5); other systems: ps(1). */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'

/** How many processes of a group run; those that have ended and were not waited for do not count. */
export function countMembers(group: number): number {
  try {
    process.kill(-group, 0)
  } catch (error) {
    // Usually none is left. EPERM: those that are left run as another user.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 0
  }
  const members = nodePlatform === 'linux' ? listProcesses() : askPs()
  return members.filter((process) => process.group === group && !/^[ZX]/.test(process.state)).length
}

interface ListedProcess {
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
      return [{ state, group: Number(group) }]
    } catch {
      // It has ended meanwhile.
      return []
    }
  })
}

function askPs(): ListedProcess[] {
  const { spawnSync } = nodeBuiltin('node:child_process')
  const { stdout } = spawnSync('ps', ['-A', '-o', 'stat=,pgid='], { encoding: 'utf8' })
  return stdout.split('\n').map((line) => {
    const [state = '', group] = line.trim().split(/\s+/)
    return { state, group: Number(group) }
  })
}
