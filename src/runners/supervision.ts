/**
 * One started program, from here to its end.
 *
 * The end is when the program has exited and its output is closed, so that nothing it printed is missed. What it has
 * started belongs to it:
 * - a stop signals the whole group, and kills it when it is still there after the grace;
 * - a program that exits by itself while others hold its output open leaves them `DRAIN_MS` to close it, then its
 *   group is killed;
 * - a process that left the group and still holds the output is waited for another `DRAIN_MS`, then no longer read;
 * - whatever is left of the group at the end is killed.
 */
import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { leadGroup } from '../engine/process-group.js'

/** How long a program's output may stay open after it has exited by itself, in ms. */
export const DRAIN_MS = 1000

/** A program as it is started here: nothing to read, and both outputs piped. */
export type StartedProgram = ChildProcessByStdio<null, Readable, Readable>

export interface SupervisionOptions {
  /** Stops the program when it aborts. */
  readonly signal: AbortSignal
  /** What a stop sends first. */
  readonly killSignal: NodeJS.Signals
  /** How long after it the group is killed, in ms. */
  readonly graceMs: number
  readonly clock: Clock
  readonly onStdout: (chunk: Uint8Array) => void
  readonly onStderr: (chunk: Uint8Array) => void
}

/** How a program ended. */
export interface ProgramEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it was stopped, if it was; whichever reason came first. */
  readonly stop?: ProgramStop
}

export interface ProgramStop {
  readonly by: 'abort' | 'reader'
  /** The abort's reason, or what the reader of the output threw. */
  readonly reason: unknown
  /** What the stop sent first. */
  readonly killSignal: NodeJS.Signals
  readonly graceMs: number
  /** The grace had passed, and the group was killed. */
  readonly wasKilled: boolean
}

/** Waits for the end of a program that has just been started. A reader that throws stops it. Never rejects. */
export function superviseProgram(child: StartedProgram, options: SupervisionOptions): Promise<ProgramEnd> {
  const { signal, killSignal, graceMs, clock } = options
  const group = leadGroup(child)
  let stop: ProgramStop | undefined
  let hasExited = false
  let wasKilled = false
  let timer: LongTimer | undefined

  const after = (ms: number, run: () => void): void => {
    clearLongTimeout(clock, timer)
    timer = setLongTimeout(clock, run, ms)
  }
  const closeOutput = (): void => {
    child.stdout.destroy()
    child.stderr.destroy()
  }
  const kill = (): void => {
    wasKilled = true
    if (stop !== undefined) stop = { ...stop, wasKilled: true }
    group.signal('SIGKILL')
    // Only later, so that what is already in the pipes is read first.
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
  // A pipe that breaks closes as well, and a program that cannot be signalled is waited for: nothing is lost here.
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
      group.end()
      resolve({ exitCode, signal: endedBy, ...(stop !== undefined && { stop }) })
    })
  })
}
