/**
 * Identifies a process by its pid, its start time and the boot of the system. A pid alone is not enough, because the system reuses pids. Linux
 * provides the start time with proc(5). Other systems provide it with ps(1) and `kern.boottime`, with a resolution of one second.
 */
import { nodeBuiltin, nodePlatform } from './node-builtins.js'
import { hasEnded, readStat } from './process-stat.js'

/** The unit of start times in /proc on Linux, in ms. */
const TICK_MS = 10

/** What identifies a process. It is kept in a store. */
export interface ProgramIdentity {
  /** The process id. The process leads the process group with the same number. */
  readonly pid: number
  /** The start time of the process, in the format of the system. */
  readonly start: string
  /** The id of the boot during which the process was started. */
  readonly boot: string
}

/** The state of a process. `alive`: it is running. `gone`: no process has its pid. `other`: another process has its pid, or the system was restarted. */
export type ProgramState = 'alive' | 'gone' | 'other'

/** Returns the state of a process. Sends no signal to it. */
export function stateOf({ pid, start, boot }: ProgramIdentity): ProgramState {
  if (boot !== bootId()) return 'other'
  const found = startOf(pid)
  if (found === undefined) return 'gone'
  return found === start ? 'alive' : 'other'
}

/** Returns the identity of the process with this pid; undefined if no process has it. */
export function identityOf(pid: number): ProgramIdentity | undefined {
  const start = startOf(pid)
  return start === undefined ? undefined : { pid, start, boot: bootId() }
}

/**
 * Returns how long ago a process started, in ms. The process may have ended. Uses the time since the boot, which nobody can set.
 * @param untilMs the uptime of the system at the end of the measured period, in ms. Default: now
 * @returns undefined if the system has no such clock or was restarted, and for an impossible value
 */
export function ageOf({ start, boot }: ProgramIdentity, untilMs?: number): number | undefined {
  if (nodePlatform !== 'linux' || boot !== bootId()) return undefined
  const age = (untilMs ?? uptimeMs()) - Number(start) * TICK_MS
  return age >= 0 ? age : undefined
}

/**
 * Returns the uptime of the system, in ms. A container may report its own, shorter uptime as that of the system. So the result is at least the uptime
 * of this process.
 */
function uptimeMs(): number {
  const own = Number(startOf(process.pid)) * TICK_MS + process.uptime() * 1000
  return Math.max(nodeBuiltin('node:os').uptime() * 1000, own)
}

/** Returns the start time of a process; undefined if no process has this pid, or if it is a zombie. */
function startOf(pid: number): string | undefined {
  if (nodePlatform === 'linux') {
    const stat = readStat(pid)
    return stat === undefined || hasEnded(stat) ? undefined : stat.start
  }
  return run('ps', ['-o', 'lstart=', '-p', String(pid)])
}

let boot: string | undefined

function bootId(): string {
  boot ??=
    nodePlatform === 'linux'
      ? nodeBuiltin('node:fs').readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
      : (run('sysctl', ['-n', 'kern.boottime']) ?? 'unknown')
  return boot
}

function run(command: string, args: readonly string[]): string | undefined {
  const { status, stdout } = nodeBuiltin('node:child_process').spawnSync(command, args, { encoding: 'utf8' })
  const text = stdout.trim()
  return status === 0 && text !== '' ? text : undefined
}
