/** Lists the processes of a process group: with proc(5) on Linux, and with ps(1) on other systems. */
import { nodeBuiltin, nodePlatform } from '../system/node-builtins.js'
import { hasEnded, readStat } from '../system/process-stat.js'

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
  return all.filter((one) => one.group === group && !hasEnded(one)).map(({ pid }) => pid)
}

interface ListedProcess {
  readonly pid: number
  readonly state: string
  readonly group: number
}

function listProcesses(): ListedProcess[] {
  return nodeBuiltin('node:fs')
    .readdirSync('/proc')
    .flatMap((name) => {
      const stat = /^\d+$/.test(name) ? readStat(name) : undefined
      return stat === undefined ? [] : [{ pid: Number(name), state: stat.state, group: stat.group }]
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
