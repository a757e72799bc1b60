/** The hosts of runs and their workers, as processes. Each process prints what it does, and its output is the record that the judge reads. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { startSpoken, type SpokenProcess } from '../spoken-process.js'
import type { Slot, Victim } from './faults.js'
import type { Silence, Work } from './judge.js'

export interface RunOptions {
  readonly redisUrl: string
  readonly lockMs: number
  readonly seed: number
  readonly hosts: number
  readonly workers: number
}

export interface Runs {
  readonly slots: readonly Slot[]
  /** Ends the launches. Resolves with all tasks and their ends, after at most `limitMs`. */
  finish(limitMs: number): Promise<{ readonly works: readonly Work[]; readonly silences: readonly Silence[] }>
}

/** Prepares the hosts and workers. Their programs are `test/support/programs/fleet-chaos-*.ts`. */
export function createRuns({ redisUrl, lockMs, seed, hosts, workers }: RunOptions): Runs {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-chaos-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const workerProcesses: SpokenProcess[] = []
  const hostProcesses: SpokenProcess[][] = Array.from({ length: hosts }, () => [])
  const startWorker = async (): Promise<Victim> => {
    const worker = startSpoken('fleet-chaos-worker', [redisUrl, lockMs])
    workerProcesses.push(worker)
    return toVictim(worker)
  }
  const startHost = async (at: number): Promise<Victim> => {
    const lives = hostProcesses[at] ?? []
    const file = join(folder, `host-${at}.db`)
    const host = startSpoken('fleet-chaos-host', [redisUrl, lockMs, file, `h${at}.${lives.length}`, seed * 100 + at])
    lives.push(host)
    return toVictim(host)
  }
  return {
    slots: [
      ...Array.from({ length: workers }, (): Slot => ({ target: 'worker', start: startWorker })),
      ...Array.from({ length: hosts }, (_, at): Slot => ({ target: 'host', start: () => startHost(at) })),
    ],
    finish: async (limitMs) => {
      const last = hostProcesses.flatMap((lives) => lives.slice(-1))
      const done = last.map(async (host) => {
        await host.says('recovered')
        host.signal('SIGTERM')
        await host.ended
      })
      await Promise.race([Promise.allSettled(done), pause(limitMs, undefined, { ref: false })])
      const works = toWorks(hostProcesses.flat(), workerProcesses)
      const silences = [...hostProcesses.flat(), ...workerProcesses].flatMap(silencesOf)
      return { works, silences }
    },
  }
}

const toVictim = (process: SpokenProcess): Victim => ({
  pid: process.pid,
  ended: process.ended,
  kill: () => {
    process.signal('SIGKILL')
    return process.ended
  },
  pause: () => process.signal('SIGSTOP'),
  resume: () => process.signal('SIGCONT'),
})

/** A line of the output of a host or worker. */
interface Line {
  readonly at: number
  /** The name of a run that a host has launched. `lines` is how many lines the run will write. */
  readonly launched?: string
  readonly lines?: number
  /** The name of a run whose end the host has received. */
  readonly ended?: string
  readonly status?: string
  readonly code?: string
  readonly text?: string
  /** The name of a run that has started (`start`) or ended (`end`). */
  readonly start?: string
  readonly end?: string
  readonly attempt?: number
  /** How long the process itself did not run, in ms. */
  readonly silent?: number
}

const linesOf = ({ said }: SpokenProcess): readonly Line[] => said as readonly unknown[] as readonly Line[]

const silencesOf = (process: SpokenProcess): Silence[] =>
  linesOf(process).flatMap(({ silent, at }) =>
    silent === undefined ? [] : [{ pid: process.pid, from: at - silent, to: at }],
  )

function toWorks(hosts: readonly SpokenProcess[], workers: readonly SpokenProcess[]): Work[] {
  const works = new Map<string, Work>()
  for (const { launched: name, lines: lineCount = 0, at } of hosts.flatMap(linesOf)) {
    if (name === undefined) continue
    works.set(name, { name, lane: name, sentAt: at, answeredAt: at, lineCount, ends: [], deeds: [] })
  }
  for (const { ended, status = '', code, at, attempt = 1, text } of hosts.flatMap(linesOf)) {
    if (ended === undefined) continue
    works.get(ended)?.ends.push({ status, code, at, attempt, lines: text?.split('\n').slice(0, -1) })
  }
  for (const worker of workers) for (const line of linesOf(worker)) noteDeed(works, worker.pid, line)
  return [...works.values()]
}

function noteDeed(works: ReadonlyMap<string, Work>, pid: number, { start, end, attempt = 1, at }: Line): void {
  const deeds = works.get(start ?? end ?? '')?.deeds ?? []
  if (start !== undefined) deeds.push({ attempt, from: at, to: undefined, pid })
  const ended = deeds.find((deed) => deed.attempt === attempt && deed.pid === pid && deed.to === undefined)
  if (end !== undefined && ended !== undefined) ended.to = at
}
