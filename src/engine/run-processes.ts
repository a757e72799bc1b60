/**
 * The processes of a run: its program, the program's process group, and what has left that group and is found by the token of the run. They end when
 * this process dies (`watchdog.ts`) or exits.
 *
 * Start a child like this:
 *
 *     const run = new RunProcesses({ killSignal: 'SIGTERM', graceMs: 5000 })
 *     const child = spawn(command, args, { env: run.environment(env), detached: hasGroups })
 *     run.lead(child)
 *     …
 *     run.ask() // and after the end of the child
 *     await run.untilGone(() => hasGraceEnded)
 *     run.close()
 */
import type { ChildProcess } from 'node:child_process'
import { elapsedMs, systemClock } from '../system/clock.js'
import { withoutClientVariables } from './client-variables.js'
import { hasGroups, killAtExit, leadGroup, type ProcessGroup } from './process-group.js'
import { newRunToken, RUN_TOKEN } from './run-token.js'
import { lookUntilGone, sendSignal, systemProcesses, TokenScan, type RunProcess } from './token-scan.js'
import { unwatchRun, watchRun } from './watchdog.js'

/** How long a killed process may take to disappear, in ms. A process in an uninterruptible system call does not end before that call. */
export const KILLED_MS = 5000

export interface StopSettings {
  /** The first signal of a stop. */
  readonly killSignal: NodeJS.Signals
  /** How long after that signal the processes are killed, in ms. */
  readonly graceMs: number
}

export class RunProcesses {
  /** The token of the run, in the environment of its processes. */
  readonly token = newRunToken()
  /** How many processes the system had started before the run. */
  readonly forks = systemProcesses.forks()
  readonly #settings: StopSettings
  readonly isWatched: boolean
  readonly #survivesHost: boolean
  readonly #signalled = new Set<number>()
  #group: ProcessGroup | undefined
  #pid: number | undefined
  #scan: TokenScan | undefined
  #forget: () => void = () => undefined
  #isGroupOver = false
  #isOver = false

  /** @param settings `survivesHost`: the processes go on when this process ends. Default false */
  constructor(settings: StopSettings & { readonly survivesHost?: boolean }) {
    this.#settings = settings
    this.#survivesHost = settings.survivesHost === true
    this.isWatched = hasGroups && !this.#survivesHost
    // The watchdog knows the token before there is a process with it.
    if (this.isWatched) watchRun({ ...settings, token: this.token })
  }

  environment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
    return { ...withoutClientVariables(env), [RUN_TOKEN]: this.token }
  }

  /** Takes the program of the run, which was started with `detached: hasGroups` and the environment of this run. */
  lead(child: ChildProcess): void {
    this.#pid = child.pid
    if (child.pid === undefined) {
      this.close()
      return
    }
    this.#scan = new TokenScan({ token: this.token, pid: child.pid, forks: this.forks })
    if (this.#survivesHost) return
    this.#group = leadGroup(child)
    if (this.isWatched) watchRun({ ...this.#settings, token: this.token, group: child.pid })
    this.#forget = killAtExit(() => this.#scan?.look().found.forEach(({ pid }) => sendSignal(pid, 'SIGKILL')))
  }

  /** The processes of the run that are running. Without /proc it is empty. */
  look(): ReturnType<TokenScan['look']> {
    return this.#scan?.look() ?? { found: [], isUnclear: false }
  }

  signalGroup(name: NodeJS.Signals): void {
    if (!this.#isGroupOver) this.#group?.signal(name)
  }

  countGroup(): number {
    return this.#group?.count() ?? 0
  }

  /** Asks every process of the run to stop. Returns those that have left the group of the program. */
  ask(): readonly RunProcess[] {
    const { killSignal } = this.#settings
    this.signalGroup(killSignal)
    if (this.isWatched) watchRun({ ...this.#settings, token: this.token, group: this.#pid, killSignal: undefined })
    const { found } = this.look()
    const detached = found.filter(({ group }) => group !== this.#pid)
    for (const { pid, group } of found) {
      if (group === this.#pid) this.#signalled.add(pid)
    }
    this.#askOnce(detached)
    return detached
  }

  kill(): void {
    this.signalGroup('SIGKILL')
    for (const { pid } of this.look().found) sendSignal(pid, 'SIGKILL')
  }

  /**
   * Waits until no process of the run is left, after the program has ended. Processes that were not asked to stop are asked now.
   * @param isKilling whether they are killed by now
   * @param onFound called with the processes that are still running
   */
  async untilGone(
    isKilling: () => boolean,
    onFound: (found: readonly RunProcess[]) => void = () => undefined,
  ): Promise<void> {
    let killedAt: number | undefined
    this.#checkGroup()
    await lookUntilGone({ look: () => this.look() }, ({ found }) => {
      this.#checkGroup()
      onFound(found)
      if (!isKilling()) {
        this.#askOnce(found)
        return true
      }
      killedAt ??= elapsedMs(systemClock)
      for (const { pid } of found) sendSignal(pid, 'SIGKILL')
      return elapsedMs(systemClock) - killedAt < KILLED_MS
    })
  }

  /** Kills what is left of the group of the program. Call it once, when the run is over. */
  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#isGroupOver) this.#group?.forget()
    else this.#group?.end()
    this.#forget()
    if (this.isWatched) unwatchRun(this.token)
  }

  /** When the group has no process any more, another group may get its number. So it is not signalled again. */
  #checkGroup(): void {
    this.#isGroupOver ||= this.#group?.exists() === false
  }

  #askOnce(processes: readonly RunProcess[]): void {
    for (const { pid } of processes) {
      if (!this.#signalled.has(pid)) sendSignal(pid, this.#settings.killSignal)
      this.#signalled.add(pid)
    }
  }
}
