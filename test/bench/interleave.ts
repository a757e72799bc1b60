/**
 * Measures subjects side by side: each in its own process, one round of each in turn, so that whatever else the machine does falls on
 * all of them alike. What is claimed is the median of the ratios of the rounds.
 *
 * Benchmark libraries run one task after the other, which a busy machine turns into noise; hence these few lines.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { sampleOf, type Sample } from './statistics.js'
import type { SubjectSpec } from './subject.js'
import type { Round, WorkerOrder, WorkerReport } from './worker.js'

export interface Effort {
  readonly rounds: number
  readonly roundMs: number
  readonly warmMs: number
}

/** What rounds say about one subject. Times are of one operation. */
export interface Measured {
  readonly cpuNs: Sample
  readonly wallNs: Sample
  readonly rounds: readonly Round[]
  readonly durations: readonly number[]
}

type Of<Names extends string> = Readonly<Record<Names, Measured>>

/** Runs rounds of all subjects in turn. */
export async function interleave<Names extends string>(
  subjects: Readonly<Record<Names, SubjectSpec>>,
  effort: Effort,
): Promise<Of<Names>> {
  const names = Object.keys(subjects) as Names[]
  const workers = new Map<Names, Worker>()
  try {
    for (const name of names) workers.set(name, await startWorker(subjects[name]))
    for (const worker of workers.values()) {
      await worker.ask({ do: 'warm', forMs: effort.warmMs, roundMs: effort.roundMs })
    }
    const rounds = new Map<Names, Round[]>(names.map((name) => [name, []]))
    for (let round = 0; round < effort.rounds; round += 1) {
      // Turn about, so that none always comes first.
      for (const name of round % 2 === 0 ? names : [...names].reverse()) {
        const answer = await workers.get(name)?.ask({ do: 'round' })
        if (answer?.type === 'round') rounds.get(name)?.push(answer.round)
      }
    }
    return Object.fromEntries(names.map((name) => [name, summarise(rounds.get(name) ?? [])])) as Of<Names>
  } finally {
    await Promise.all(Array.from(workers.values(), (worker) => worker.close()))
  }
}

/** The ratio of two subjects, round by round. */
export function ratioOf(subject: Measured, reference: Measured, time: 'cpuNs' | 'wallNs' = 'cpuNs'): Sample {
  return sampleOf(subject.rounds.map((round, index) => round[time] / (reference.rounds[index]?.[time] ?? NaN)))
}

function summarise(rounds: readonly Round[]): Measured {
  return {
    cpuNs: sampleOf(rounds.map(({ cpuNs }) => cpuNs)),
    wallNs: sampleOf(rounds.map(({ wallNs }) => wallNs)),
    rounds,
    durations: rounds.flatMap(({ durations }) => durations),
  }
}

interface Worker {
  ask(order: WorkerOrder): Promise<WorkerReport>
  close(): Promise<void>
}

async function startWorker(spec: SubjectSpec): Promise<Worker> {
  const child = fork(new URL('worker.js', import.meta.url), [JSON.stringify(spec)], { execArgv: ['--expose-gc'] })
  await nextReport(child)
  return {
    ask: (order) => {
      const report = nextReport(child)
      child.send(order)
      return report
    },
    close: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || !child.connected) {
          resolve()
          return
        }
        child.once('exit', () => resolve())
        child.send({ do: 'close' } satisfies WorkerOrder)
        // A subject that does not close must not stop the benchmark.
        setTimeout(() => child.kill('SIGKILL'), 5000).unref()
      }),
  }
}

function nextReport(child: ChildProcess): Promise<WorkerReport> {
  return new Promise((resolve, reject) => {
    const onMessage = (report: WorkerReport): void => {
      child.off('exit', onExit)
      if (report.type === 'failed') reject(new Error(report.error))
      else resolve(report)
    }
    const onExit = (code: number | null): void => {
      child.off('message', onMessage)
      reject(new Error(`a worker of the benchmark ended with ${code ?? 'a signal'}`))
    }
    child.once('message', onMessage)
    child.once('exit', onExit)
  })
}
