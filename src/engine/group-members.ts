/** Lists the processes of a process group: with proc(5) on Linux, and with ps(1) on other systems. */
import { nodeBuiltin, nodePlatform } from '../node-builtins.js'

/** Returns how many processes of a group are running. */
export function countMembers(group: number): number {
  try {
    process.kill(-group, 0)
  } catch (error) {
    // ESRCH: the group has no process. EPERM: its processes run as another user, so they are counted below.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 0
  }
  return membersOf(group).length
}

/** Returns the ids of the running processes of a group, without zombies. */
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
      // `stat` contains the name of the program in parentheses, which may contain any character. So the fields are read after the last parenthesis.
      const [state = '', , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return [{ pid: Number(name), state, group: Number(group) }]
    } catch {
      // The process has ended since the folder was listed.
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
