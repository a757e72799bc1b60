/** Runs the hosts of `npm run stops`, and stops them. */
import { fork, type ChildProcess } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { readStore, type StoreContents } from 'agent-tasks/store'
import { hasToken } from '../../../src/engine/run-token.js'
import { createRandom, type Random } from '../../bench/soak/random.js'
import { judge, type Stop, type Verdict } from './judge.js'
import { kindOf } from './kinds.js'
import { linesOf } from './notes.js'

/** The ways to stop a process. */
export const WAYS = ['SIGTERM', 'SIGINT', 'dispose()', 'end of stdin', 'SIGKILL'] as const
export type Way = (typeof WAYS)[number]

/** How each host exits. */
const EXITS = { SIGTERM: 143, SIGINT: 130, 'dispose()': 0, 'end of stdin': 0, SIGKILL: 'SIGKILL' } as const

/** What a host does wrong on purpose: it cancels all or only queued tasks, or answers `wasDelivered` always with no or with yes. */
export const FAULTS = ['cancel', 'queued', 'repeat', 'lose'] as const
export type Fault = (typeof FAULTS)[number]

/** What the rounds of one way have shown. */
export interface Row extends Verdict {
  readonly way: Way
  readonly stops: number
  /** Processes that should have ended, by their command lines. */
  readonly left: readonly string[]
  /** How long each stop took, in ms. */
  readonly times: readonly number[]
}

/** How long processes that were killed may take to end, in ms. The processes that the programs leave live longer than that. */
const ENDING_MS = 10_000

/** The share of the rounds in which the second process is stopped as well, also while it takes over. */
const SECOND_STOP = 0.3

/**
 * Compiles the host, because a thousand processes would each do it. Written into the package, so that the host imports the package by its name.
 * @returns the compiled file
 */
export async function buildHost(): Promise<string> {
  const input = fileURLToPath(new URL('host.ts', import.meta.url))
  const file = fileURLToPath(new URL('../../../reports/stops/host.mjs', import.meta.url))
  const bundle = await rolldown({ input, platform: 'node', external: /^agent-tasks/ })
  await bundle.write({ file, format: 'esm' })
  await bundle.close()
  return file
}

interface Settings {
  /** The compiled host. */
  readonly hostFile: string
  readonly rounds: number
  readonly seed: number
  readonly fault?: Fault | undefined
}

/** Runs the rounds of one way, each on a store of its own. */
export async function runWay(way: Way, settings: Settings): Promise<Row> {
  const { rounds, seed } = settings
  const random = createRandom(seed + WAYS.indexOf(way))
  const each: Omit<Row, 'way'>[] = []
  for (let round = 0; round < rounds; round += 1) each.push(await runRound(way, seed + round, random, settings))
  const all = (key: 'differences' | 'repeats' | 'losses' | 'left'): readonly string[] => each.flatMap((row) => row[key])
  const sum = (key: 'tasks' | 'inGrace' | 'stops'): number => each.reduce((total, row) => total + row[key], 0)
  return {
    way,
    stops: sum('stops'),
    tasks: sum('tasks'),
    inGrace: sum('inGrace'),
    differences: all('differences'),
    repeats: all('repeats'),
    losses: all('losses'),
    left: all('left'),
    times: each.flatMap(({ times }) => times),
  }
}

async function runRound(
  way: Way,
  seed: number,
  random: Random,
  { hostFile, fault }: Settings,
): Promise<Omit<Row, 'way'>> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-stops-'))
  const stops: Stop[] = []
  const times: number[] = []
  const left: string[] = []
  const lives = random.chance(SECOND_STOP) ? 2 : 1
  for (let life = 0; life < lives; life += 1) {
    const after = life > 0 && random.chance(0.5) ? 'starting' : 'ready'
    const host = startHost(hostFile, [folder, String(seed), String(life), 'stopped', fault ?? ''])
    await host.says(after)
    await pause(random.below(after === 'ready' ? 450 : 60))
    await freeze(host.child)
    const before = copyOf(folder)
    const startedAt = performance.now()
    stop(host.child, way)
    host.child.kill('SIGCONT')
    const exit = await host.exited
    times.push(performance.now() - startedAt)
    if (exit !== EXITS[way]) throw new Error(`${way}: the host ended with ${exit}: ${host.errors()}`)
    // A killed host ends nothing itself: its watchdog and the next host do.
    if (way !== 'SIGKILL') left.push(...processesOf(folder, (kind) => kindOf(kind).survives !== true))
    stops.push({ life, isKill: way === 'SIGKILL', before, after: copyOf(folder) })
  }
  const last = startHost(hostFile, [folder, String(seed), String(lives), 'last', fault ?? ''])
  const exit = await last.exited
  if (exit !== 0) throw new Error(`${way}: the last host ended with ${exit}: ${last.errors()}`)
  const isAny = (): boolean => true
  for (let waited = 0; waited < ENDING_MS && processesOf(folder, isAny).length > 0; waited += 50) await pause(50)
  left.push(...processesOf(folder, isAny))
  const verdict = judge(folder, stops)
  const isClean = [verdict.differences, verdict.repeats, verdict.losses, left].every(({ length }) => length === 0)
  if (isClean || fault !== undefined) rmSync(folder, { recursive: true })
  const named = (texts: readonly string[]): string[] => texts.map((text) => `${folder}: ${text}`)
  return {
    ...verdict,
    differences: named(verdict.differences),
    repeats: named(verdict.repeats),
    losses: named(verdict.losses),
    left: named(left),
    stops: lives,
    times,
  }
}

interface Host {
  readonly child: ChildProcess
  readonly exited: Promise<number | string>
  readonly errors: () => string
  /** Resolves when the host has said this. */
  says(word: string): Promise<void>
}

function startHost(hostFile: string, args: readonly string[]): Host {
  const child = fork(hostFile, args, { execArgv: [], stdio: ['pipe', 'ignore', 'pipe', 'ipc'] })
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  return {
    child,
    exited,
    errors: () => errors,
    says: (word) =>
      new Promise((resolve, reject) => {
        child.on('message', (message) => message === word && resolve())
        void exited.then((exit) => reject(new Error(`the host ended with ${exit} before it was stopped: ${errors}`)))
      }),
  }
}

/** Freezes a process, so that nothing in it happens any more. */
async function freeze(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP')
  const folder = `/proc/${child.pid}/task`
  const runs = (thread: string): boolean => !/\) T /.test(readFileSync(`${folder}/${thread}/stat`, 'latin1'))
  while (readdirSync(folder).some(runs)) await pause(1)
}

/** The content of the store of a host that is frozen or has ended: what the next process would read. */
function copyOf(folder: string): StoreContents {
  const copy = join(folder, 'copy.db')
  for (const suffix of ['', '-wal']) {
    rmSync(copy + suffix, { force: true })
    const file = join(folder, `tasks.db${suffix}`)
    if (existsSync(file)) copyFileSync(file, copy + suffix)
  }
  return readStore(copy)
}

function stop(child: ChildProcess, way: Way): void {
  if (way === 'dispose()') child.send('dispose')
  else if (way === 'end of stdin') child.stdin?.end()
  else child.kill(way)
}

/** The running processes with the token of a run of such a kind, by their command lines. */
function processesOf(folder: string, isMeant: (kind: string) => boolean): string[] {
  const tokens = linesOf(folder, 'tokens').flatMap((line) => {
    const [kind = '', token = ''] = line.split(' ')
    return isMeant(kind) ? [token] : []
  })
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1')
      if (!tokens.some((token) => hasToken(environment, token))) return []
      return [readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')]
    } catch {
      return []
    }
  })
}
