/** What Linux says about a process in /proc/PID/stat, see proc(5). */
import { nodeBuiltin } from './node-builtins.js'

export interface ProcessStat {
  /** The name of the program, at most 15 bytes. */
  readonly name: string
  /** One letter: `Z` is a zombie, `X` a process that is being removed. */
  readonly state: string
  /** The id of the process that started it, or that has taken it over. */
  readonly parent: number
  /** The id of its process group. */
  readonly group: number
  /** Whether it is a thread of the kernel, which runs no program. */
  readonly isOfKernel: boolean
  /** When it started, in clock ticks since the boot. */
  readonly start: string
}

/** The flag of a kernel thread, PF_KTHREAD of the kernel's `sched.h`. */
const KERNEL_THREAD = 0x0020_0000

/** Reads the state of a process; undefined if no process has this pid, and on a system without /proc. */
export function readStat(pid: number | string): ProcessStat | undefined {
  let stat: string
  try {
    stat = nodeBuiltin('node:fs').readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The name is in parentheses and may contain any character. So the other fields are read after the last parenthesis.
  const end = stat.lastIndexOf(')')
  const fields = stat.slice(end + 2).split(' ')
  const [state = '', parent, group] = fields
  return {
    name: stat.slice(stat.indexOf('(') + 1, end),
    state,
    parent: Number(parent),
    group: Number(group),
    isOfKernel: Math.floor(Number(fields[6]) / KERNEL_THREAD) % 2 === 1,
    start: fields[19] ?? '',
  }
}

export const hasEnded = ({ state }: Pick<ProcessStat, 'state'>): boolean => /^[ZX]/.test(state)
