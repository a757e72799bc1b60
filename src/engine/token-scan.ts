/**
 * Finds the processes of a run by the token in their environment. It works on Linux, for processes of the same user (of any user for root) that have
 * kept the environment that they were given. On other systems it finds none.
 */
import { elapsedMs, systemClock } from '../system/clock.js'
import { nodeBuiltin, nodePlatform } from '../system/node-builtins.js'
import { hasEnded, readStat, type ProcessStat } from '../system/process-stat.js'
import { toOneLine } from '../data/control-characters.js'
import { hasToken } from './run-token.js'

/** Whether processes are found by the token in their environment. */
export const findsByToken = nodePlatform === 'linux'

/**
 * How long a process with an empty environment is looked at again, in ms. While a process executes a new program, its environment reads as empty, for up
 * to 70 ms on a busy machine.
 */
const EMPTY_MS = 300

/** How many processes with an empty environment are remembered. */
const MAX_EMPTY = 1000

/** The intervals at which processes are looked at again, in ms, and how many times the first one is used. */
const LOOK_MS = { first: 20, then: 100, firstLooks: 25 } as const

/** Where a run began. Processes that are older than the run are left out, because a machine may have thousands of them. */
export interface RunMark {
  readonly token: string
  /** The pid of the first process of the run. */
  readonly pid: number
  /** How many processes the system had started before the run. Undefined if it is unknown. */
  readonly forks?: number | undefined
}

export interface RunProcess {
  readonly pid: number
  readonly start: string
  readonly group: number
  readonly name: string
}

export interface Look {
  readonly found: readonly RunProcess[]
  /** Whether the environment of a process could not be read yet, so that the process may belong to the run. */
  readonly isUnclear: boolean
}

export interface ProcessReader {
  pids(): readonly number[]
  /** The environment of a process; undefined if the process has ended, or its environment may not be read. */
  environment(pid: number): string | undefined
  stat(pid: number): ProcessStat | undefined
  /** How many processes the system has started; undefined if it is unknown. */
  forks(): number | undefined
  /** Pids are below this number. Undefined if it is unknown. */
  maxPid(): number | undefined
  /** When each process was first seen with an empty environment: by its pid and start. */
  readonly emptySince: Map<string, number>
}

export class TokenScan {
  readonly #mark: RunMark
  readonly #reader: ProcessReader
  constructor(mark: RunMark, reader: ProcessReader = systemProcesses) {
    this.#mark = mark
    this.#reader = reader
  }

  look(): Look {
    const { token } = this.#mark
    const found: RunProcess[] = []
    let isUnclear = false
    for (const pid of this.#candidates()) {
      const environment = this.#reader.environment(pid)
      if (environment === undefined) continue
      const isEmpty = environment === ''
      if (!isEmpty && !hasToken(environment, token)) continue
      const stat = this.#reader.stat(pid)
      if (stat === undefined || hasEnded(stat)) continue
      if (!isEmpty) found.push({ pid, start: stat.start, group: stat.group, name: stat.name })
      else if (!stat.isOfKernel && this.#isYetEmpty(`${pid} ${stat.start}`)) isUnclear = true
    }
    return { found, isUnclear }
  }

  /** The processes that can belong to the run. A lower pid than its first one can only be given out after the pids have started again from the lowest. */
  #candidates(): readonly number[] {
    const { pid: first, forks } = this.#mark
    const pids = this.#reader.pids().filter((pid) => pid > 1 && pid !== process.pid)
    const [now, maxPid] = [this.#reader.forks(), this.#reader.maxPid()]
    const isKnown = forks !== undefined && now !== undefined && maxPid !== undefined
    const haveWrapped = !isKnown || first + (now - forks) >= maxPid
    return haveWrapped ? pids : pids.filter((pid) => pid >= first)
  }

  /** Whether a process with an empty environment may get one soon. It has none for good if it was started with an empty one. */
  #isYetEmpty(process: string): boolean {
    const { emptySince } = this.#reader
    const now = elapsedMs(systemClock)
    const since = emptySince.get(process) ?? now
    if (emptySince.size >= MAX_EMPTY) emptySince.clear()
    emptySince.set(process, since)
    return now - since < EMPTY_MS
  }
}

/**
 * Looks for the processes of a run until none is left, or `onLook` returns false.
 * @param onLook called after each look that has found a process, or could not read one
 */
export async function lookUntilGone(scan: Pick<TokenScan, 'look'>, onLook: (look: Look) => boolean): Promise<void> {
  // The table of processes that was read last may be older than what has just started.
  await Promise.resolve()
  for (let looks = 1; ; looks += 1) {
    const look = scan.look()
    if ((look.found.length === 0 && !look.isUnclear) || !onLook(look)) return
    const ms = looks <= LOOK_MS.firstLooks ? LOOK_MS.first : LOOK_MS.then
    // The processes are real, so this waits for real time.
    await new Promise((resolve) => systemClock.setTimeout(() => resolve(undefined), ms))
  }
}

/** Returns the line of a process for people and models. The process can choose its name. */
export const nameOf = ({ pid, name }: RunProcess): string => `${pid} (${toOneLine(name)})`

/** Sends a signal to a process or, with a negative number, to a group. Returns whether it was sent. */
export function sendSignal(target: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(target, name)
    return true
  } catch {
    // ESRCH: it has just ended. EPERM: it runs as another user.
    return false
  }
}

function readProc(path: string): string | undefined {
  try {
    return nodeBuiltin('node:fs').readFileSync(`/proc/${path}`, 'latin1')
  } catch {
    return undefined
  }
}

const toNumber = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text))

/** What was read in the current microtask: several runs that are stopped at once share it. */
let read: { readonly pids: readonly number[]; readonly environments: Map<number, string | undefined> } | undefined

function current(): NonNullable<typeof read> {
  if (read === undefined) {
    queueMicrotask(() => (read = undefined))
    read = { pids: listPids(), environments: new Map() }
  }
  return read
}

function listPids(): number[] {
  if (!findsByToken) return []
  try {
    return nodeBuiltin('node:fs')
      .readdirSync('/proc')
      .flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  } catch {
    return []
  }
}

export const systemProcesses: ProcessReader = {
  pids: () => current().pids,
  environment: (pid) => {
    const { environments } = current()
    if (!environments.has(pid)) environments.set(pid, readProc(`${pid}/environ`))
    return environments.get(pid)
  },
  stat: readStat,
  forks: () => toNumber(/^processes (\d+)$/m.exec(readProc('stat') ?? '')?.[1]),
  maxPid: () => toNumber(/^\d+/.exec(readProc('sys/kernel/pid_max') ?? '')?.[0]),
  emptySince: new Map(),
}
