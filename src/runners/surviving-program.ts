/**
 * A program that survives its host. It is known by a folder (`surviving-script.ts` lists the files in it), so that the host that started it and the
 * next one follow it in the same way.
 */
import type { ChildProcess } from 'node:child_process'
import type { FSWatcher } from 'node:fs'
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../clock.js'
import { nodeBuiltin } from '../node-builtins.js'
import { readStart, readText, revokeStart, signalGroup, type StartState } from '../engine/program-folder.js'
import { killAtExit } from '../engine/process-group.js'
import { stateOf } from '../process-identity.js'
import { reapProgram, RUN_TOKEN } from '../engine/reap.js'
import { DRAIN_MS, type ProgramEnd, type ProgramStop, type SupervisionOptions } from './supervision.js'
import { SHELL_NAME, spawnShell } from './start-error.js'
import { SURVIVING_SCRIPT } from './surviving-script.js'

/** How often the files are looked at where nothing tells of their changes, in ms. */
const LOOK_MS = 500

/** The unit of the shell's limit on the size of a file, in bytes. */
const BLOCK = 512

/** How much is read of a file at once, in bytes. */
const CHUNK = 65_536

/**
 * Starts a program in a folder of its own, which must exist and be empty. `keptBytes` of its output are kept at each end.
 * @returns the shell that runs it; without a pid, it could not be started, and emits `error`
 * @throws ProcessError for what the system refuses at once
 */
export function startSurviving(
  folder: string,
  program: {
    readonly command: string
    readonly args: readonly string[]
    readonly cwd: string | undefined
    readonly env: NodeJS.ProcessEnv
  },
  keptBytes: number,
): ChildProcess {
  const { command, args, cwd, env } = program
  const blocks = String(Math.max(1, Math.ceil(keptBytes / BLOCK)))
  const own = ['-c', SURVIVING_SCRIPT, SHELL_NAME, folder, blocks, String(keptBytes), command, ...args]
  const child = spawnShell(own, program, {
    cwd,
    env: { ...env, [RUN_TOKEN]: globalThis.crypto.randomUUID() },
    stdio: 'ignore',
    detached: true,
  })
  // A script that ends before it has said who it is will not do so later: it could not create its files.
  child.once('exit', () => revokeStart(folder))
  child.unref()
  return child
}

/** Follows a program to its end: resolves when it has ended and its output is complete. Never rejects. */
export function followProgram(folder: string, options: SupervisionOptions): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const follower = new Follower(folder, options, resolve)
    follower.look()
  })
}

class Follower {
  readonly #folder: string
  readonly #options: SupervisionOptions
  readonly #onEnd: (end: ProgramEnd) => void
  readonly #outputs: readonly { readonly file: string; offset: number; readonly onChunk: (chunk: Uint8Array) => void }[]
  readonly #watcher: FSWatcher | undefined
  #timer: LongTimer | undefined
  #killTimer: LongTimer | undefined
  #start: StartState | undefined
  #forget: (() => void) | undefined
  #exitedAt: number | undefined
  #stop: ProgramStop | undefined
  #wasKilled = false
  #hasEnded = false

  constructor(folder: string, options: SupervisionOptions, onEnd: (end: ProgramEnd) => void) {
    this.#folder = folder
    this.#options = options
    this.#onEnd = onEnd
    this.#outputs = [
      { file: 'stdout', offset: 0, onChunk: options.onStdout },
      { file: 'stderr', offset: 0, onChunk: options.onStderr },
    ]
    this.#watcher = watchFolder(folder, () => this.look())
    if (options.signal.aborted) this.#requestStop('abort', options.signal.reason)
    else options.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Looks at the files, and again later. */
  look(): void {
    if (this.#hasEnded) return
    // Before the exit code is read: a script that has ended has written it.
    const isGone = this.#isGone()
    this.#readOutputs()
    const exit = readText(`${this.#folder}/exit`)
    const { clock } = this.#options
    if (exit !== undefined) this.#exitedAt ??= clock.now()
    // The output is complete, or what holds it open has had its time.
    const isOver =
      exit !== undefined && (exists(`${this.#folder}/done`) || clock.now() - (this.#exitedAt ?? 0) >= DRAIN_MS)
    if (isOver || isGone) this.#end(toExitCode(exit))
    else this.#lookLater()
  }

  #lookLater(): void {
    const { clock } = this.#options
    clearLongTimeout(clock, this.#timer)
    this.#timer = setLongTimeout(clock, () => this.look(), LOOK_MS)
  }

  /** Whether the script has ended or was revoked, or its files are gone: nothing more will be known of it. */
  #isGone(): boolean {
    const start = this.#readStart()
    if (!exists(this.#folder)) return true
    if (start === undefined) return false
    return start.type === 'revoked' || stateOf(start.identity) !== 'alive'
  }

  /** It does not change, and is still needed when the files are gone. */
  #readStart(): StartState | undefined {
    return (this.#start ??= readStart(this.#folder))
  }

  #readOutputs(): void {
    if (this.#stop?.by === 'reader') return
    for (const output of this.#outputs) {
      try {
        output.offset += readFrom(`${this.#folder}/${output.file}`, output.offset, output.onChunk)
      } catch (error) {
        this.#requestStop('reader', error)
      }
    }
  }

  readonly #onAbort = (): void => this.#requestStop('abort', this.#options.signal.reason)

  #requestStop(by: ProgramStop['by'], reason: unknown): void {
    if (this.#stop !== undefined) return
    const { killSignal, graceMs, clock } = this.#options
    this.#stop = { by, reason, killSignal, graceMs, wasKilled: false }
    signalGroup(this.#readStart(), killSignal)
    // A program that is to end does not survive.
    this.#forget = killAtExit(() => signalGroup(this.#readStart(), 'SIGKILL'))
    this.#killTimer = setLongTimeout(clock, () => this.#kill(), graceMs)
  }

  #kill(): void {
    this.#wasKilled = true
    if (this.#stop !== undefined) this.#stop = { ...this.#stop, wasKilled: true }
    signalGroup(this.#readStart(), 'SIGKILL')
    this.look()
  }

  #end(exit: number | undefined): void {
    const { clock, signal } = this.#options
    this.#hasEnded = true
    this.#watcher?.close()
    clearLongTimeout(clock, this.#timer)
    clearLongTimeout(clock, this.#killTimer)
    signal.removeEventListener('abort', this.#onAbort)
    // What is left of the group, such as a process that holds the output open.
    const start = this.#readStart()
    if (start?.type === 'started') reapProgram(start)
    this.#forget?.()
    this.#readOutputs()
    for (const { file, onChunk } of this.#outputs) readTail(`${this.#folder}/${file}.tail`, onChunk)
    this.#onEnd({ ...describeExit(exit, this.#wasKilled), ...(this.#stop !== undefined && { stop: this.#stop }) })
  }
}

/** Undefined for a program that did not say how it ended. */
const toExitCode = (text = ''): number | undefined => (/^\d+\n$/.test(text) ? Number(text) : undefined)

/** A shell reports a signal as 128 and its number. */
function describeExit(exit: number | undefined, wasKilled: boolean): Pick<ProgramEnd, 'exitCode' | 'signal'> {
  if (exit === undefined) return { exitCode: null, signal: 'SIGKILL' }
  if (exit <= 128) return { exitCode: exit, signal: null }
  const { signals } = nodeBuiltin('node:os').constants
  const signal = Object.entries(signals).find(([, number]) => number === exit - 128)?.[0] as NodeJS.Signals | undefined
  return signal === undefined && !wasKilled
    ? { exitCode: exit, signal: null }
    : { exitCode: null, signal: signal ?? 'SIGKILL' }
}

function watchFolder(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = nodeBuiltin('node:fs').watch(folder, onChange)
    // Without a watcher the files are looked at from time to time.
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}

function readFrom(file: string, offset: number, onChunk: (chunk: Uint8Array) => void): number {
  const { closeSync, openSync, readSync } = nodeBuiltin('node:fs')
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch {
    return 0
  }
  try {
    let read = 0
    for (;;) {
      const chunk = new Uint8Array(CHUNK)
      const count = readSync(descriptor, chunk, 0, CHUNK, offset + read)
      if (count === 0) return read
      read += count
      onChunk(chunk.subarray(0, count))
    }
  } finally {
    closeSync(descriptor)
  }
}

function readTail(file: string, onChunk: (chunk: Uint8Array) => void): void {
  try {
    readFrom(file, 0, onChunk)
  } catch {
    // The reader has had enough; its stop no longer matters.
  }
}

function exists(file: string): boolean {
  return nodeBuiltin('node:fs').existsSync(file)
}
