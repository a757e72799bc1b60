/** Ends the processes that a program of a dead host has left. Signals go only to processes that certainly belong to the program. */
import { elapsedMs, systemClock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { stateOf, type ProgramIdentity } from '../system/process-identity.js'
import { hasGroups } from './process-group.js'
import { KILLED_MS } from './run-processes.js'
import { hasToken } from './run-token.js'
import { findsByToken, lookUntilGone, sendSignal, systemProcesses, TokenScan } from './token-scan.js'
import { unwatchRun, watchRun } from './watchdog.js'

/** A program that was started as the leader of a process group, with `RUN_TOKEN` in its environment. */
export interface StartedProgram {
  /** The identity of the program, which is the leader of its process group. */
  readonly identity: ProgramIdentity
  /** The token of its run. */
  readonly token: string
  /** How many processes the system had started before the run. */
  readonly forks?: number
  /** How the run is stopped. Default: SIGTERM, and at once SIGKILL. */
  readonly killSignal?: NodeJS.Signals
  readonly graceMs?: number
  /** The watchdog of the host that started the program. It ends the run when that host dies. */
  readonly watchdog?: ProgramIdentity
}

/** How long a watchdog may take longer than the grace period of a run, in ms. */
const WATCHDOG_MS = 3000

/**
 * Whether the program itself is running: the process has the stored start time and boot id and, on Linux, the token in its environment. So a
 * manipulated store cannot make this process kill a foreign process.
 */
export function leads({ identity, token }: StartedProgram): boolean {
  // With pid 1, a signal to the group (pid -1) would go to every process of the system.
  if (identity.pid <= 1 || stateOf(identity) !== 'alive') return false
  return !findsByToken || hasToken(systemProcesses.environment(identity.pid) ?? '', token)
}

/** Sends a signal to the process group of a program if the program is running. Returns whether the signal was sent. */
export function signalProgram(program: StartedProgram, name: NodeJS.Signals): boolean {
  return leads(program) && sendSignal(-program.identity.pid, name)
}

/**
 * Kills the processes of a program's group. While the program itself is running, its whole group is killed. After that, only those processes of the
 * group are killed that have the token in their environment: the group may belong to another program by now.
 * @returns how many signals were sent, to a group or a process
 */
export function reapGroup(program: StartedProgram): number {
  if (signalProgram(program, 'SIGKILL')) return 1
  return scanOf(program)
    .look()
    .found.filter(({ group, pid }) => group === program.identity.pid && sendSignal(pid, 'SIGKILL')).length
}

/** Kills all processes of a program's run. Returns how many signals were sent, to a group or a process. */
export function reapProgram(program: StartedProgram): number {
  const group = signalProgram(program, 'SIGKILL') ? 1 : 0
  const rest = scanOf(program)
    .look()
    .found.filter((one) => group === 0 || one.group !== program.identity.pid)
  return group + rest.filter(({ pid }) => sendSignal(pid, 'SIGKILL')).length
}

/** Whether the program or any other process of its run is running, or may be: the environment of a process may not be readable yet. */
export function isLeft(program: StartedProgram): boolean {
  const { found, isUnclear } = scanOf(program).look()
  return leads(program) || found.length > 0 || isUnclear
}

/** Whether another process has the pid of the program and, on Linux, an environment without the token of its run. */
export function isForeign({ identity, token }: StartedProgram): boolean {
  if (!findsByToken || stateOf(identity) !== 'alive') return false
  const environment = systemProcesses.environment(identity.pid) ?? 'unreadable'
  // It is empty while the process executes another program.
  return environment !== '' && !hasToken(environment, token)
}

/** Looks for the processes of a program's run. Without /proc, it finds the program itself while it is running. */
export function scanOf(program: StartedProgram): Pick<TokenScan, 'look'> {
  const { identity, token, forks } = program
  if (findsByToken) return new TokenScan({ token, pid: identity.pid, forks })
  const leader = { pid: -identity.pid, start: identity.start, group: identity.pid, name: 'process group' }
  return { look: () => ({ found: leads(program) ? [leader] : [], isUnclear: false }) }
}

/**
 * Ends all processes of a run whose host is dead. If the watchdog of that host is running, it has asked them to stop, so this waits for it. Otherwise they
 * are asked now. They are killed when the grace period is over. If this process dies in the meantime, its own watchdog goes on.
 * @returns whether the processes have ended
 */
export async function endProgram(program: StartedProgram): Promise<boolean> {
  const { token, watchdog, killSignal = 'SIGTERM', graceMs = 0 } = program
  const scan = scanOf(program)
  const isWatched = watchdog !== undefined && stateOf(watchdog) === 'alive'
  const killAt = elapsedMs(systemClock) + graceMs + (isWatched ? WATCHDOG_MS : 0)
  const asked = new Set<number>()
  let hasEnded = true
  let isOurs = false as boolean
  await lookUntilGone(scan, ({ found }) => {
    const now = elapsedMs(systemClock)
    if (hasGroups && !isOurs) watchRun({ token, killSignal: isWatched ? undefined : killSignal, graceMs })
    isOurs = true
    for (const { pid } of found) {
      if (now >= killAt) sendSignal(pid, 'SIGKILL')
      else if (!isWatched && !asked.has(pid)) sendSignal(pid, killSignal)
      asked.add(pid)
    }
    hasEnded = now < killAt + KILLED_MS
    return hasEnded
  })
  if (isOurs) unwatchRun(token)
  return hasEnded
}

/** Converts what `RunDurability.saveProgram` has stored; undefined for any other value. */
export function toStartedProgram(saved: unknown): StartedProgram | undefined {
  const { identity, token, forks, killSignal, graceMs, watchdog } = (saved ?? {}) as {
    readonly [Field in keyof StartedProgram]?: unknown
  }
  const program = toIdentity(identity)
  if (program === undefined || typeof token !== 'string') return undefined
  const isSignal = Object.hasOwn(nodeBuiltin('node:os').constants.signals, String(killSignal))
  return {
    identity: program,
    token,
    ...(Number.isSafeInteger(forks) && { forks: forks as number }),
    ...(isSignal && { killSignal: killSignal as NodeJS.Signals }),
    ...(typeof graceMs === 'number' && graceMs >= 0 && { graceMs }),
    ...omitUndefined({ watchdog: toIdentity(watchdog) }),
  }
}

function toIdentity(saved: unknown): ProgramIdentity | undefined {
  const { pid, start, boot } = (saved ?? {}) as { readonly [Field in keyof ProgramIdentity]?: unknown }
  if (!Number.isSafeInteger(pid) || (pid as number) <= 1) return undefined
  if (typeof start !== 'string' || typeof boot !== 'string') return undefined
  return { pid: pid as number, start, boot }
}
