/** The hosts of runs and their workers, as processes. Each says what it does; what they have said is the record. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { startSpoken, type Spoken, type SpokenProcess } from '../spoken-process.js'
import type { Slot, Victim } from './faults.js'
import type { Deed, Silence, Work } from './judge.js'

export interface RunOptions {
  readonly redisUrl: string
  readonly lockMs: number
  readonly seed: number
  readonly hosts: number
  readonly workers: number
}

export interface Runs {
  readonly slots: readonly Slot[]
  /** They launch nothing more; resolves with what became of all, at most so many ms later. */
  finish(limitMs: number): Promise<{ readonly works: readonly Work[]; readonly silences: readonly Silence[] }>
}

/** What hosts and workers do is in `test/support/programs/fleet-chaos-*.ts`. */
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

const toVictim = ({ pid, signal, ended }: SpokenProcess): Victim => ({
  pid,
  kill: () => {
    signal('SIGKILL')
    return ended
  },
  pause: () => signal('SIGSTOP'),
  resume: () => signal('SIGCONT'),
})

const silencesOf = ({ pid, said }: SpokenProcess): Silence[] =>
  said.flatMap(({ silent, at }) =>
    silent === undefined ? [] : [{ pid, from: Number(at) - Number(silent), to: Number(at) }],
  )

function toWorks(hosts: readonly SpokenProcess[], workers: readonly SpokenProcess[]): Work[] {
  const works = new Map<string, Work>()
  for (const { launched, lines, at } of hosts.flatMap(({ said }) => said)) {
    if (launched === undefined) continue
    const name = String(launched)
    const [sentAt, lineCount] = [Number(at), Number(lines)]
    works.set(name, { name, lane: name, sentAt, answeredAt: sentAt, lineCount, ends: [], deeds: [] })
  }
  for (const line of hosts.flatMap(({ said }) => said)) {
    if (line['ended'] !== undefined) works.get(String(line['ended']))?.ends.push(toEnd(line))
  }
  for (const { pid, said } of workers) for (const line of said) noteDeed(works, pid, line)
  return [...works.values()]
}

const toEnd = ({ status, code, at, attempt, text }: Spoken): Work['ends'][number] => ({
  status: String(status),
  code: code === undefined ? undefined : String(code),
  at: Number(at),
  attempt: Number(attempt),
  lines: String(text).split('\n').slice(0, -1),
})

function noteDeed(works: ReadonlyMap<string, Work>, pid: number, { start, end, attempt, at }: Spoken): void {
  const deeds = works.get(String(start ?? end))?.deeds ?? []
  const deed: Deed = { attempt: Number(attempt), from: Number(at), to: undefined, pid }
  if (start !== undefined) deeds.push(deed)
  else {
    const open = deeds.find((one) => one.attempt === deed.attempt && one.pid === pid && one.to === undefined)
    if (open !== undefined) open.to = deed.from
  }
}
