/**
 * Identifies a process beyond its pid, which may be reused: by its start time and by the boot of the system. Linux uses proc(5); other systems use
 * ps(1) and `kern.boottime`, with a resolution of one second.
 */
import { nodeBuiltin, nodePlatform } from './node-builtins.js'

/** The unit of start times in /proc, in ms. The ABI of Linux has 100 per second. */
const TICK_MS = 10

/** The stored identity of a process. */
export interface ProgramIdentity {
  /** Its pid, which is also the number of the process group that it leads. */
  readonly pid: number
  /** When it started, in the format of the system. */
  readonly start: string
  /** The boot of the system in which it started. */
  readonly boot: string
}

/**
 * The state of a process. `alive`: it is running. `gone`: no process has its pid. `other`: another process has its pid, or the system was booted
 * again.
 */
export type ProgramState = 'alive' | 'gone' | 'other'

/** Returns the state of a process, without sending a signal. */
export function stateOf({ pid, start, boot }: ProgramIdentity): ProgramState {
  if (boot !== bootId()) return 'other'
  const found = startOf(pid)
  if (found === undefined) return 'gone'
  return found === start ? 'alive' : 'other'
}

/** Returns the identity of a running process; undefined if there is none. */
export function identityOf(pid: number): ProgramIdentity | undefined {
  const start = startOf(pid)
  return start === undefined ? undefined : { pid, start, boot: bootId() }
}

/**
 * Returns how long ago a process started, in ms. It uses the time since boot, which nobody can set. The process may have ended.
 * @param untilMs the system uptime at the end of the measured period, in ms. Default: now
 * @returns undefined without such a clock, after another boot, or for an impossible value
 */
export function ageOf({ start, boot }: ProgramIdentity, untilMs?: number): number | undefined {
  if (nodePlatform !== 'linux' || boot !== bootId()) return undefined
  const age = (untilMs ?? uptimeMs()) - Number(start) * TICK_MS
  return age >= 0 ? age : undefined
}

/** Containers may report their own uptime as that of the system. The system uptime is at least the uptime of this process. */
function uptimeMs(): number {
  const own = Number(startOf(process.pid)) * TICK_MS + process.uptime() * 1000
  return Math.max(nodeBuiltin('node:os').uptime() * 1000, own)
}

/** Returns when a process started; undefined if no process has this pid, or it is a zombie. */
function startOf(pid: number): string | undefined {
  if (nodePlatform === 'linux') {
    try {
      const stat = nodeBuiltin('node:fs').readFileSync(`/proc/${pid}/stat`, 'latin1')
      // The name of the program, in parentheses, may contain any character.
      const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return state === 'Z' || state === 'X' ? undefined : fields[18]
    } catch {
      return undefined
    }
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
