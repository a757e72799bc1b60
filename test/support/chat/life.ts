/** The lives of a chat server in a folder: it is killed at random moments, and goes on in another process with another port. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import type { Fault } from './faults.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const program = fileURLToPath(new URL('../programs/chat-host.ts', import.meta.url))

/**
 * The files that a server which has ended leaves to the next one. One that is killed while it writes its notes leaves `notes.new`. SQLite may keep its
 * log, empty, and the index of that; the log of the history stays until a server needs the history again.
 */
const KEPT = /^(begun|notes(\.new)?|chat\.db(-history)?(-lock|-turns|-wal|-shm)?)$/

/** How often the count of a server that is idle is read before it is killed anyway. */
const MAX_WAITS = 100

/** What a host is to be. */
export interface HostArguments {
  readonly kind: 'ws' | 'hono' | 'next' | 'bot'
  readonly folder: string
  /** The address of the service of a bot. */
  readonly api?: string
  readonly fault?: Fault
}

/** Random numbers from 0 to 1 that a seed determines. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Host {
  readonly child: ChildProcess
  readonly exited: Promise<number | string>
  /** Resolves with the first line. */
  readonly started: Promise<string>
  readonly said: (line: string) => Promise<void>
}

export class Lives {
  readonly folder: string
  /** The folder for temporary files of the server, which is empty in the end. */
  readonly temp: string
  kills = 0
  #host: Host | undefined
  #url: string | undefined
  readonly #options: Omit<HostArguments, 'folder'>
  readonly #random: () => number
  #errors = ''

  constructor(options: Omit<HostArguments, 'folder'>, random: () => number) {
    this.#options = options
    this.#random = random
    const all = mkdtempSync(join(tmpdir(), 'chat-'))
    this.folder = join(all, 'store')
    this.temp = join(all, 'temp')
    mkdirSync(this.folder)
    mkdirSync(this.temp)
    onTestFinished(async () => {
      this.#host?.child.kill('SIGKILL')
      await this.#host?.exited
      rmSync(all, { recursive: true, force: true })
    })
  }

  /** The address of the server that runs now. */
  readonly url = (): string | undefined => this.#url

  async start(): Promise<void> {
    const host = this.#spawn()
    this.#url = await host.started
  }

  /**
   * Kills the server at a random moment, which may be before it has begun to listen, and starts the next one.
   * @param progress counts what the server has done. A moment is a little after a random count, because a machine may be slow
   */
  async killAndStart(progress: () => number): Promise<void> {
    const isEarly = this.#random() < 0.15
    const due = progress() + (isEarly ? 0 : Math.floor(this.#random() * 6))
    for (let waits = 0; progress() < due && waits < MAX_WAITS; waits += 1) await pause(20)
    await pause(this.#random() * 200)
    await this.#kill()
    if (isEarly) {
      const { started } = this.#spawn()
      await Promise.race([started.catch(() => undefined), pause(this.#random() * 1200)])
      await this.#kill()
    }
    await this.start()
  }

  /** Waits until every task is delivered. */
  async idle(): Promise<void> {
    this.#host?.child.stdin?.write('idle?\n')
    await this.#host?.said('idle')
  }

  /** Ends the server as an operator does. It leaves nothing behind. */
  async end(): Promise<void> {
    this.#url = undefined
    this.#host?.child.kill('SIGTERM')
    expect(await this.#host?.exited).toBe(143)
    expect(processesIn(this.folder)).toEqual([])
    // tsx keeps what it has compiled.
    expect(readdirSync(this.temp).filter((name) => !name.startsWith('tsx-'))).toEqual([])
    expect(readdirSync(this.folder).filter((name) => !KEPT.test(name))).toEqual([])
    expect(this.#errors).toBe('')
  }

  #spawn(): Host {
    const child = spawn(process.execPath, ['--import', 'tsx', program, JSON.stringify(this.#arguments())], {
      cwd: root,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: this.temp },
    })
    child.stdin.on('error', () => undefined)
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
    const lines = createInterface(child.stdout)
    const started = once(lines, 'line').then(([line]) => String(line))
    started.catch(() => undefined)
    const said = async (wanted: string): Promise<void> => {
      const [line] = (await Promise.race([once(lines, 'line'), exited.then((code) => [`exit ${code}`])])) as [string]
      if (line !== wanted) throw new Error(`The host said '${line}' instead of '${wanted}'.\n${this.#errors}`)
    }
    const failed = exited.then((code) => {
      throw new Error(`The host ended with ${code}.\n${this.#errors}`)
    })
    failed.catch(() => undefined)
    this.#host = { child, exited, started: Promise.race([started, failed]), said }
    this.#host.started.catch(() => undefined)
    return this.#host
  }

  async #kill(): Promise<void> {
    this.#url = undefined
    this.#host?.child.kill('SIGKILL')
    expect(await this.#host?.exited).toBe('SIGKILL')
    this.kills += 1
  }

  #arguments(): HostArguments {
    return { ...this.#options, folder: this.folder }
  }
}

/** The processes whose command names a folder, where the system shows them. */
function processesIn(folder: string): string[] {
  if (!existsSync('/proc')) return []
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}
