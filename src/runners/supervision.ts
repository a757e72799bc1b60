/**
 * Supervises a started program until it has exited and its output is closed, so that no output is lost.
 *
 * - A stop asks all processes of the run to stop, also those that have left the group of the program. After the grace period, they are killed. The run
 *   has ended when they have.
 * - If the program exits by itself, other processes of its group may hold its output open for `DRAIN_MS`. Then the group is killed.
 * - Processes that have left the group may hold the output open for another `DRAIN_MS`. Then the output is closed.
 * - At the end, all remaining processes of the group are killed. With `endDetached`, those that have left the group are stopped, too.
 */
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { RunProcesses } from '../engine/run-processes.js'
import { lookUntilGone, type RunProcess } from '../engine/token-scan.js'

/** How long other processes may hold the output open after the program has exited, in ms. */
export const DRAIN_MS = 1000

/** How long a run may take to end after its processes were killed, in ms. */
export const KILL_MS = 1000

/** A program with piped outputs, and perhaps a piped stdin. */
export type StartedProgram = ChildProcessByStdio<Writable | null, Readable, Readable>

export interface SupervisionOptions {
  readonly signal: AbortSignal
  /** The first signal of a stop. */
  readonly killSignal: NodeJS.Signals
  /** How long after that signal the processes of the run are killed, in ms. */
  readonly graceMs: number
  /** Whether processes that have left the group of the program are stopped when the program has ended by itself. */
  readonly endDetached: boolean
  readonly clock: Clock
  readonly onStdout: (chunk: Uint8Array) => void
  readonly onStderr: (chunk: Uint8Array) => void
}

export interface ProgramEnd {
  /** The exit code; null if a signal ended the program. */
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** The first stop, if the program was stopped. */
  readonly stop?: ProgramStop
  /** How many other processes of the run were ended with the program, or after it. Absent if there were none. */
  readonly leftProcesses?: number
  /** The processes that have left the group of the program, and run on. Absent if there are none. */
  readonly detached?: readonly RunProcess[]
}

export interface ProgramStop {
  readonly by: 'abort' | 'reader'
  /** The reason of the abort, or the exception that `onStdout` or `onStderr` threw. */
  readonly reason: unknown
  /** The first signal of the stop. */
  readonly killSignal: NodeJS.Signals
  readonly graceMs: number
  /** Whether processes were killed, because the grace period had passed. */
  readonly wasKilled: boolean
}

/**
 * Resolves when the program has ended, and after a stop every process of its run. If `onStdout` or `onStderr` throws, the program is stopped. Never
 * rejects.
 */
export function superviseProgram(
  child: StartedProgram,
  run: RunProcesses,
  options: SupervisionOptions,
): Promise<ProgramEnd> {
  const { signal, killSignal, graceMs, endDetached, clock } = options
  let stop: ProgramStop | undefined
  let hasExited = false
  let wasKilled = false
  let drainTimer: LongTimer | undefined
  let killTimer: LongTimer | undefined
  let leftInGroup: number | undefined
  let isClosed = false
  let isKilling = false
  let detached: readonly RunProcess[] = []
  const ended = new Set<number>()

  const drain = (then: () => void): void => {
    clearLongTimeout(clock, drainTimer)
    drainTimer = setLongTimeout(clock, then, DRAIN_MS)
  }
  const closeOutput = (): void => {
    child.stdout.destroy()
    child.stderr.destroy()
  }
  const countLeft = (): void => {
    if (stop === undefined) leftInGroup ??= run.countGroup()
  }
  const killGroup = (): void => {
    wasKilled = true
    countLeft()
    run.signalGroup('SIGKILL')
    // The output is closed later, because the pipes may still contain data.
    if (hasExited) drain(closeOutput)
  }
  const killAll = (): void => {
    isKilling = true
    if (!isClosed) {
      if (stop !== undefined) stop = { ...stop, wasKilled: true }
      killGroup()
    }
    run.kill()
  }
  const requestStop = (by: ProgramStop['by'], reason: unknown): void => {
    if (stop !== undefined) return
    stop = { by, reason, killSignal, graceMs, wasKilled: false }
    if (!wasKilled) clearLongTimeout(clock, drainTimer)
    for (const { pid } of run.ask()) ended.add(pid)
    killTimer ??= setLongTimeout(clock, killAll, graceMs)
  }
  const reading = (read: (chunk: Uint8Array) => void) => (chunk: Uint8Array) => {
    try {
      read(chunk)
    } catch (error) {
      requestStop('reader', error)
    }
  }
  const onAbort = (): void => requestStop('abort', signal.reason)
  const isStopping = (): boolean => stop !== undefined
  /** Ends the processes that the program has left behind, or reports those that may stay. */
  const endLeft = async (): Promise<void> => {
    if (!isStopping()) {
      run.signalGroup('SIGKILL')
      await lookUntilGone(run, ({ found, isUnclear }) => {
        detached = found.filter(({ group }) => group !== child.pid)
        return isUnclear && !isStopping()
      })
      if (!isStopping() && (!endDetached || detached.length === 0)) return
      killTimer ??= setLongTimeout(clock, killAll, graceMs)
    }
    await run.untilGone(
      () => isKilling,
      (found) => {
        for (const { pid } of found) ended.add(pid)
      },
    )
    detached = []
  }

  signal.addEventListener('abort', onAbort, { once: true })
  child.stdout.on('data', reading(options.onStdout))
  child.stderr.on('data', reading(options.onStderr))
  // These errors need no handling. After a broken pipe, `close` is emitted, too. If the program cannot be signalled, this waits for its end.
  for (const emitter of [child, child.stdout, child.stderr]) emitter.on('error', () => undefined)
  child.once('exit', () => {
    hasExited = true
    if (wasKilled) drain(closeOutput)
    else if (stop === undefined) drain(killGroup)
  })
  return new Promise((resolve) => {
    child.once('close', (exitCode, endedBy) => {
      isClosed = true
      clearLongTimeout(clock, drainTimer)
      countLeft()
      void endLeft().then(() => {
        clearLongTimeout(clock, killTimer)
        signal.removeEventListener('abort', onAbort)
        run.close()
        const leftProcesses = (leftInGroup ?? 0) + ended.size
        resolve({
          exitCode,
          signal: endedBy,
          ...omitUndefined({ stop }),
          ...(leftProcesses > 0 && { leftProcesses }),
          ...(detached.length > 0 && { detached }),
        })
      })
    })
  })
}
