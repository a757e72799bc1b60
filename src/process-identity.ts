/**
 * Tells a process from a later one that has got its pid: by the time of its start, and by the boot of the system.
 * Linux: proc(5); other systems: ps(1) and `kern.boottime`, with a resolution of a second.
 */
import { nodeBuiltin, nodePlatform } from './node-builtins.js'

/** The unit of start times in /proc, in ms: the ABI of Linux has 100 of them in a second. */
const TICK_MS = 10

/** A process, for as long as files remember it. */
export interface ProgramIdentity {
  /** Its pid; it leads the process group of the same number. */
  readonly pid: number
  /** When it started, as the system tells it. */
  readonly start: string
  /** The boot of the system that it started in. */
  readonly boot: string
}

/**
 * What became of a process. `alive`: it runs. `gone`: no process has its pid. `other`: its pid is another process now, or this is another boot.
 */
export type ProgramState = 'alive' | 'gone' | 'other'

/** Looks a process up. Nothing is signalled. */
export function stateOf({ pid, start, boot }: ProgramIdentity): ProgramState {
  if (boot !== bootId()) return 'other'
  const found = startOf(pid)
  if (found === undefined) return 'gone'
  return found === start ? 'alive' : 'other'
}

/** The identity of a process that runs now; undefined when there is none. */
export function identityOf(pid: number): ProgramIdentity | undefined {
  const start = startOf(pid)
  return start === undefined ? undefined : { pid, start, boot: bootId() }
}

/**
 * How long ago a process started, in ms, by the clock that counts from the boot of the system: nobody can set it. The process may have ended.
 * @param untilMs how long the system had been up at the end of what is asked for, in ms. Default: now
 * @returns undefined where there is no such clock, after another boot, and for what is no time since then
 */
export function ageOf({ start, boot }: ProgramIdentity, untilMs?: number): number | undefined {
  if (nodePlatform !== 'linux' || boot !== bootId()) return undefined
  const age = (untilMs ?? uptimeMs()) - Number(start) * TICK_MS
  return age >= 0 ? age : undefined
}

/** Containers may show the time since their own start as that of the system, which cannot be shorter than this process has lived. */
function uptimeMs(): number {
  const own = Number(startOf(process.pid)) * TICK_MS + process.uptime() * 1000
  return Math.max(nodeBuiltin('node:os').uptime() * 1000, own)
}

/** When a process started; undefined when no process has this pid, or it has ended and was not waited for. */
function startOf(pid: number): string | undefined {
  if (nodePlatform === 'linux') {
    try {
      const stat = nodeBuiltin('node:fs').readFileSync(`/proc/${pid}/stat`, 'latin1')
      // The name of the program, in parentheses, may have any characters.
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
