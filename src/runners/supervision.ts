/**
 * Supervises a started program until it has exited and its output is closed, so that no output is lost.
 *
 * - A stop sends a signal to the whole process group. After the grace period, the group is killed.
 * - If the program exits by itself, other processes of its group may hold its output open for `DRAIN_MS`. Then the group is killed.
 * - Processes that have left the group may hold the output open for another `DRAIN_MS`. Then the output is closed.
 * - At the end, all remaining processes of the group are killed.
 */
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { defined } from '../defined.js'
import { leadGroup } from '../engine/process-group.js'

/** How long other processes may hold the output open after the program has exited, in ms. */
export const DRAIN_MS = 1000

/** A program with piped outputs, and perhaps a piped stdin. */
export type StartedProgram = ChildProcessByStdio<Writable | null, Readable, Readable>

export interface SupervisionOptions {
  /** Stops the program when it aborts. */
  readonly signal: AbortSignal
  /** The first signal of a stop. */
  readonly killSignal: NodeJS.Signals
  /** How long after that signal the group is killed, in ms. */
  readonly graceMs: number
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
  /** How many processes of the group still ran after the program had exited by itself. They were killed. Absent if there were none. */
  readonly leftProcesses?: number
}

export interface ProgramStop {
  readonly by: 'abort' | 'reader'
  /** The reason of the abort, or the exception that `onStdout` or `onStderr` threw. */
  readonly reason: unknown
  /** The first signal of the stop. */
  readonly killSignal: NodeJS.Signals
  readonly graceMs: number
  /** Whether the group was killed, because the grace period had passed. */
  readonly wasKilled: boolean
}

/** Resolves when the program has ended. If `onStdout` or `onStderr` throws, the program is stopped. Never rejects. */
export function superviseProgram(child: StartedProgram, options: SupervisionOptions): Promise<ProgramEnd> {
  const { signal, killSignal, graceMs, clock } = options
  const group = leadGroup(child)
  let stop: ProgramStop | undefined
  let hasExited = false
  let wasKilled = false
  let timer: LongTimer | undefined
  let leftProcesses: number | undefined

  const after = (ms: number, run: () => void): void => {
    clearLongTimeout(clock, timer)
    timer = setLongTimeout(clock, run, ms)
  }
  const closeOutput = (): void => {
    child.stdout.destroy()
    child.stderr.destroy()
  }
  const countLeft = (): void => {
    if (stop === undefined) leftProcesses ??= group.count()
  }
  const kill = (): void => {
    wasKilled = true
    countLeft()
    if (stop !== undefined) stop = { ...stop, wasKilled: true }
    group.signal('SIGKILL')
    // The output is closed later, because the pipes may still contain data.
    if (hasExited) after(DRAIN_MS, closeOutput)
  }
  const requestStop = (by: ProgramStop['by'], reason: unknown): void => {
    if (stop !== undefined) return
    stop = { by, reason, killSignal, graceMs, wasKilled: false }
    if (wasKilled) return
    group.signal(killSignal)
    after(graceMs, kill)
  }
  const reading = (read: (chunk: Uint8Array) => void) => (chunk: Uint8Array) => {
    try {
      read(chunk)
    } catch (error) {
      requestStop('reader', error)
    }
  }
  const onAbort = (): void => requestStop('abort', signal.reason)

  signal.addEventListener('abort', onAbort, { once: true })
  child.stdout.on('data', reading(options.onStdout))
  child.stderr.on('data', reading(options.onStderr))
  // These errors need no handling. After a broken pipe, `close` is emitted, too. If the program cannot be signalled, this waits for its end.
  for (const emitter of [child, child.stdout, child.stderr]) emitter.on('error', () => undefined)
  child.once('exit', () => {
    hasExited = true
    if (wasKilled) after(DRAIN_MS, closeOutput)
    else if (stop === undefined) after(DRAIN_MS, kill)
  })
  return new Promise((resolve) => {
    child.once('close', (exitCode, endedBy) => {
      clearLongTimeout(clock, timer)
      signal.removeEventListener('abort', onAbort)
      countLeft()
      group.end()
      const left = leftProcesses === undefined || leftProcesses === 0 ? {} : { leftProcesses }
      resolve({ exitCode, signal: endedBy, ...defined({ stop }), ...left })
    })
  })
}
