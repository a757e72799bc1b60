/**
 * Supervises a started program until it has exited and its output is closed, so that no output is lost.
 *
 * - A stop signals the whole process group, and kills it after the grace period.
 * - If the program exits by itself while processes of its group hold its output open, they have `DRAIN_MS` to close it. Then the group is killed.
 * - The output of a process that has left the group is read for another `DRAIN_MS`, then closed.
 * - Remaining processes of the group are killed at the end.
 */
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { defined } from '../defined.js'
import { leadGroup } from '../engine/process-group.js'

/** How long a program's output may stay open after it has exited by itself, in ms. */
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
  /** Null if a signal ended it. */
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** The first reason why it was stopped. */
  readonly stop?: ProgramStop
  /** How many processes were left in its group, and killed, after it exited by itself. Absent if there were none. */
  readonly leftProcesses?: number
}

export interface ProgramStop {
  readonly by: 'abort' | 'reader'
  /** The abort's reason, or the exception of the output's reader. */
  readonly reason: unknown
  /** The first signal of the stop. */
  readonly killSignal: NodeJS.Signals
  readonly graceMs: number
  /** Whether the grace period passed and the group was killed. */
  readonly wasKilled: boolean
}

/** Resolves when a program that was just started has ended. A reader that throws stops the program. Never rejects. */
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
    // Not at once, because the pipes are read first.
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
  // These errors need no handling: a broken pipe is followed by `close`, and a program that cannot be signalled is waited for.
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
