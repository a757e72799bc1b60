/**
 * A program that survives its host. A folder identifies the program (`surviving-script.ts` lists the files in it). So the next host follows the program
 * in the same way as the host that started it.
 */
import type { FSWatcher } from 'node:fs'
import { whenAborted } from '../system/abort.js'
import { clearLongTimeout, elapsedMs, setLongTimeout, systemClock, type LongTimer } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { readExit } from '../engine/program-folder.js'
import { killAtExit } from '../engine/process-group.js'
import { leads, reapGroup, reapProgram, scanOf, signalProgram, type StartedProgram } from '../engine/reap.js'
import { KILLED_MS, RunProcesses, type StopSettings } from '../engine/run-processes.js'
import { lookUntilGone, sendSignal, type RunProcess } from '../engine/token-scan.js'
import { openRegular, readRegular } from '../system/regular-file.js'
import { spawnGated, type GatedShell } from './gated-start.js'
import { DRAIN_MS, type ProgramEnd, type ProgramStop, type SupervisionOptions } from './supervision.js'
import { SURVIVING_SCRIPT } from './surviving-script.js'

/** How often the files are checked when the system reports no changes, in ms. */
const LOOK_MS = 500

/** The unit of the shell's file size limit, in bytes. */
const BLOCK = 512

/** How much of a file is read at once, in bytes. */
const CHUNK = 65_536

/** How long after the deadline of its host the script ends the program itself, in ms. A living host ends it before. */
const LATER_MS = 1000

/** The longest time that `sleep` takes everywhere, in ms (24 days). */
const MAX_SLEEP_MS = 2 ** 31 - 1

/** How much of a `.size` file is read, in bytes. */
const SIZES_BYTES = 64

/**
 * Starts a program in its folder, which must exist and be empty. The first and the last `keptBytes` bytes of its output are kept.
 * @returns the shell that runs the program; the shell waits until it is released
 * @throws ProcessError when the start fails immediately
 */
export function startSurviving(
  folder: string,
  program: {
    readonly command: string
    readonly args: readonly string[]
    readonly cwd: string | undefined
    readonly env: NodeJS.ProcessEnv
    /** The file that the program reads from stdin. Default: stdin is empty. */
    readonly stdin?: string | undefined
  },
  keptBytes: number,
  { timeoutMs, ...stop }: StopSettings & TimeLimit = { killSignal: 'SIGTERM', graceMs: 0 },
): GatedShell {
  const { command, args, stdin = '/dev/null' } = program
  const limit = timeoutMs === undefined || timeoutMs === Infinity ? '' : secondsOf(timeoutMs + LATER_MS)
  const signal = stop.killSignal.replace(/^SIG/, '')
  const stopping = [limit, signal, signal === 'KILL' ? '0' : secondsOf(stop.graceMs)]
  const own = [folder, String(blocksOf(keptBytes)), String(keptBytes), ...stopping, stdin, command, ...args]
  const run = new RunProcesses({ ...stop, survivesHost: true })
  const shell = spawnGated(SURVIVING_SCRIPT, own, program, run, stop, ['ignore', 'ignore', 'ignore'])
  shell.child.unref()
  return shell
}

/** A time for `sleep`, which takes whole seconds everywhere. */
const secondsOf = (ms: number): string => String(Math.ceil(Math.min(ms, MAX_SLEEP_MS) / 1000))

/** The size of the file with the beginning of an output, in blocks. */
const blocksOf = (keptBytes: number): number => Math.max(1, Math.ceil(keptBytes / BLOCK))

/** The time limit of a program. Its script keeps it if no host does. */
interface TimeLimit {
  /** In ms, from the start of the program. Absent if it has none. */
  readonly timeoutMs?: number | undefined
}

export interface FollowOptions extends SupervisionOptions, TimeLimit {
  /** Aborts when the next process is to follow the program. The promise then never settles. */
  readonly left?: AbortSignal | undefined
  /** The identity of the started program; undefined if the program ended at once. */
  readonly program: StartedProgram | undefined
  /** How much is read of the beginning and of the end of an output, in bytes. The files may be larger, because the program can write to them. */
  readonly maxOutputBytes: number
  /** Called after the beginning of an output was read, if the bytes between the beginning and the end were left out. */
  readonly onGap: (output: 'stdout' | 'stderr', bytes: number) => void
  /** Called if a part of stdout is missing in the files. */
  readonly onLost: () => void
}

/** Follows a program. Resolves when the program has ended and its output is complete. Never rejects. */
export function followProgram(folder: string, options: FollowOptions): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const follower = new Follower(folder, options, resolve)
    follower.look()
  })
}

interface FollowedOutput {
  readonly name: 'stdout' | 'stderr'
  /** How many bytes at the beginning of the output have been read. */
  offset: number
  readonly onChunk: (chunk: Uint8Array) => void
}

class Follower {
  readonly #folder: string
  readonly #options: FollowOptions
  readonly #onEnd: (end: ProgramEnd) => void
  readonly #outputs: readonly FollowedOutput[]
  readonly #stopListening: (() => void)[] = []
  readonly #watcher: FSWatcher | undefined
  #timer: LongTimer | undefined
  #killTimer: LongTimer | undefined
  #forget: (() => void) | undefined
  #exitedAt: number | undefined
  #stop: ProgramStop | undefined
  #wasKilled = false
  #isKilling = false
  #hasEnded = false
  readonly #asked = new Set<number>()
  readonly #ended = new Set<number>()

  constructor(folder: string, options: FollowOptions, onEnd: (end: ProgramEnd) => void) {
    this.#folder = folder
    this.#options = options
    this.#onEnd = onEnd
    this.#outputs = [
      { name: 'stdout', offset: 0, onChunk: options.onStdout },
      { name: 'stderr', offset: 0, onChunk: options.onStderr },
    ]
    this.#watcher = watchFolder(folder, () => this.look())
    this.#stopListening.push(whenAborted(options.signal, this.#onAbort))
    this.#stopListening.push(whenAborted(options.left, this.#leave))
  }

  /** Checks the files now, and again later. */
  look(): void {
    if (this.#hasEnded) return
    // This is checked before the exit code is read: the script writes the exit code before it ends, so no exit code is missed.
    const isGone = this.#isGone()
    this.#readOutputs()
    const exit = readExit(this.#folder)
    const { clock } = this.#options
    if (exit !== undefined) this.#exitedAt ??= clock.now()
    // The output is complete, or other processes have held it open for `DRAIN_MS`.
    const isOver =
      exit !== undefined && (exists(`${this.#folder}/done`) || clock.now() - (this.#exitedAt ?? 0) >= DRAIN_MS)
    if ((isOver || isGone) && !this.#isDue()) void this.#end(toExitCode(exit))
    else this.#lookLater()
  }

  #lookLater(): void {
    const { clock } = this.#options
    clearLongTimeout(clock, this.#timer)
    this.#timer = setLongTimeout(clock, () => this.look(), LOOK_MS)
  }

  /** Whether the script has ended, or its files were removed. In both cases the files do not change any more. */
  #isGone(): boolean {
    const { program } = this.#options
    return program === undefined || !leads(program) || !exists(this.#folder)
  }

  /** Whether the script has ended the program at its deadline. The deadline of the task is due, too, and aborts the run. */
  #isDue(): boolean {
    return this.#stop === undefined && this.#options.timeoutMs !== undefined && this.#wasOverdue()
  }

  #wasOverdue(): boolean {
    return exists(`${this.#folder}/overdue`)
  }

  #signal(name: NodeJS.Signals): void {
    const { program } = this.#options
    if (program !== undefined) signalProgram(program, name)
  }

  #readOutputs(): void {
    if (this.#stop?.by === 'reader') return
    const most = blocksOf(this.#options.maxOutputBytes) * BLOCK
    for (const output of this.#outputs) {
      try {
        output.offset += readFrom(`${this.#folder}/${output.name}`, output.offset, most, output.onChunk)
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
    // If this process dies now, the script does not send the signal again.
    note(`${this.#folder}/stopping`)
    // The script has sent the signal.
    if (!this.#wasOverdue()) this.#signal(killSignal)
    for (const { pid, group } of this.#found()) {
      if (group === this.#options.program?.identity.pid) this.#asked.add(pid)
      else this.#ask(pid)
    }
    // If this process exits now, it kills the program: a program that is being stopped must not survive.
    this.#forget = killAtExit(() => this.#reap())
    this.#killTimer = setLongTimeout(clock, () => this.#kill(), graceMs)
  }

  #kill(): void {
    this.#isKilling = true
    if (this.#hasEnded) return
    this.#wasKilled = true
    if (this.#stop !== undefined) this.#stop = { ...this.#stop, wasKilled: true }
    this.#reap()
    this.look()
  }

  /** Stops following the program, because the next process is to follow it. */
  readonly #leave = (): void => {
    const { clock } = this.#options
    if (this.#stop !== undefined || this.#hasEnded) return
    this.#hasEnded = true
    this.#watcher?.close()
    clearLongTimeout(clock, this.#timer)
    for (const stop of this.#stopListening) stop()
  }

  #reap(): void {
    const { program } = this.#options
    if (program !== undefined) reapProgram(program)
  }

  #found(): readonly RunProcess[] {
    const { program } = this.#options
    return program === undefined ? [] : scanOf(program).look().found
  }

  #ask(pid: number): void {
    if (!this.#asked.has(pid)) sendSignal(pid, this.#options.killSignal)
    this.#asked.add(pid)
    this.#ended.add(pid)
  }

  #isStopping(): boolean {
    return this.#stop !== undefined
  }

  /** Ends what is left of the run when its program has ended. Returns the processes that have left the group of the program, and may run on. */
  async #endLeft(program: StartedProgram): Promise<readonly RunProcess[]> {
    const { clock, graceMs, endDetached } = this.#options
    const scan = scanOf(program)
    const outside = (found: readonly RunProcess[]): RunProcess[] =>
      found.filter(({ group }) => group !== program.identity.pid)
    let detached: readonly RunProcess[] = []
    // Some processes of the group may still run, for example to hold the output open. They are killed.
    if (!this.#isStopping()) {
      reapGroup(program)
      await lookUntilGone(scan, ({ found, isUnclear }) => {
        detached = outside(found)
        return isUnclear && !this.#isStopping()
      })
      if (!this.#isStopping() && (!endDetached || detached.length === 0)) return detached
    }
    let killedAt: number | undefined
    this.#killTimer ??= setLongTimeout(clock, () => (this.#isKilling = true), graceMs)
    await lookUntilGone(scan, ({ found }) => {
      for (const { pid } of found) {
        if (this.#isKilling) sendSignal(pid, 'SIGKILL')
        else this.#ask(pid)
      }
      if (this.#isKilling) killedAt ??= elapsedMs(systemClock)
      return killedAt === undefined || elapsedMs(systemClock) - killedAt < KILLED_MS
    })
    reapGroup(program)
    return []
  }

  async #end(exit: number | undefined): Promise<void> {
    const { clock, program, onLost } = this.#options
    this.#hasEnded = true
    this.#watcher?.close()
    clearLongTimeout(clock, this.#timer)
    if (exit === KILLED && this.#stop !== undefined && this.#wasOverdue()) {
      this.#stop = { ...this.#stop, wasKilled: true }
    }
    const detached = program === undefined ? [] : await this.#endLeft(program)
    clearLongTimeout(clock, this.#killTimer)
    for (const stop of this.#stopListening) stop()
    this.#forget?.()
    this.#readOutputs()
    const lost = this.#outputs.filter((output) => !this.#readEnd(output))
    if (lost.some(({ name }) => name === 'stdout')) onLost()
    this.#onEnd({
      ...describeExit(exit, this.#wasKilled),
      ...omitUndefined({ stop: this.#stop }),
      ...(this.#ended.size > 0 && { leftProcesses: this.#ended.size }),
      ...(detached.length > 0 && { detached }),
    })
  }

  /** Reads the last part of an output, from the tail file. Returns whether the output is complete. */
  #readEnd({ name, offset: read, onChunk }: FollowedOutput): boolean {
    // The program was stopped because a reader threw, so the rest is not read.
    if (this.#stop?.by === 'reader') return true
    const { maxOutputBytes, onGap } = this.#options
    const file = `${this.#folder}/${name}`
    const { kept = maxOutputBytes, size } = readSizes(`${file}.size`)
    const isFull = read >= blocksOf(Math.min(kept, maxOutputBytes)) * BLOCK
    if (size === undefined) return !isFull && !exists(`${this.#folder}/done`)
    // Positions in the output: of the first byte in the tail file, and of the first byte to read from it.
    const start = Math.max(size - kept, 0)
    const from = Math.max(read, start, size - maxOutputBytes)
    if (from >= size) return true
    try {
      if (from > read) onGap(name, from - read)
      const added = readFrom(`${file}.tail`, from - start, size - start, onChunk)
      return from + added >= size && (isFull || from === read)
    } catch (reason) {
      const { killSignal, graceMs } = this.#options
      this.#stop = { by: 'reader', reason, killSignal, graceMs, wasKilled: false }
      return true
    }
  }
}

/** Reads the `.size` file of an output: the number of bytes that are kept at each end, and the total number of bytes. */
function readSizes(file: string): { readonly kept?: number; readonly size?: number } {
  const [, kept, size] = /^(\d{1,15})\n(?:\s*(\d{1,15})\n)?$/.exec(readRegular(file, SIZES_BYTES) ?? '') ?? []
  return { ...(kept !== undefined && { kept: Number(kept) }), ...(size !== undefined && { size: Number(size) }) }
}

/** The exit code; undefined if the file contains no valid one. */
const toExitCode = (text = ''): number | undefined => (/^\d+\n$/.test(text) ? Number(text) : undefined)

/** The exit code of a program that was ended by SIGKILL. */
const KILLED = 137

/** Signals that end no program, or that nobody sends to end one. 128 plus such a number is an exit code: some agents exit with the HTTP status modulo 256. */
const HARMLESS: ReadonlySet<string> = new Set(
  'SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGWINCH SIGSTKFLT SIGPWR SIGIO SIGPOLL'.split(' '),
)

/** A shell reports a signal as the exit code 128 plus the number of the signal. */
function describeExit(exit: number | undefined, wasKilled: boolean): Pick<ProgramEnd, 'exitCode' | 'signal'> {
  if (exit === undefined) return { exitCode: null, signal: 'SIGKILL' }
  if (exit <= 128) return { exitCode: exit, signal: null }
  const { signals } = nodeBuiltin('node:os').constants
  const signal = Object.entries(signals).find(([name, number]) => number === exit - 128 && !HARMLESS.has(name))?.[0] as
    NodeJS.Signals | undefined
  return signal === undefined && !wasKilled
    ? { exitCode: exit, signal: null }
    : { exitCode: null, signal: signal ?? 'SIGKILL' }
}

function watchFolder(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = nodeBuiltin('node:fs').watch(folder, onChange)
    // Without the watcher, a timer checks the files (`LOOK_MS`).
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}

/** Reads a file from `offset` to `end`, or to its own end. Returns the number of bytes read. */
function readFrom(file: string, offset: number, end: number, onChunk: (chunk: Uint8Array) => void): number {
  const { closeSync, readSync } = nodeBuiltin('node:fs')
  const descriptor = openRegular(file)
  if (descriptor === undefined) return 0
  try {
    let read = 0
    for (;;) {
      const chunk = new Uint8Array(CHUNK)
      const count = readSync(descriptor, chunk, 0, Math.min(CHUNK, end - offset - read), offset + read)
      if (count === 0) return read
      read += count
      onChunk(chunk.subarray(0, count))
    }
  } finally {
    closeSync(descriptor)
  }
}

function exists(file: string): boolean {
  return nodeBuiltin('node:fs').existsSync(file)
}

/** Creates an empty file. It may be impossible, for example because the folder was removed. */
function note(file: string): void {
  try {
    nodeBuiltin('node:fs').writeFileSync(file, '', { flag: 'wx', mode: 0o600 })
  } catch {
    // Then the program may get the signal twice.
  }
}
