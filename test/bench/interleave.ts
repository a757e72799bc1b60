/**
 * Measures subjects side by side: each in its own process, one round of each in turn, so that other load on the machine slows all of them
 * alike. A ratio is the median of the ratios of the rounds.
 *
 * Benchmark libraries run one task after the other, and a busy machine turns their results into noise.
 */
import { fork, type ChildProcess } from 'node:child_process'
import type { BuiltSubjectSpec, Round } from './subject.js'
import type { WorkerOrder, WorkerReport } from './worker.js'

export interface Effort {
  /** In all. */
  readonly rounds: number
  /** How often each subject gets a new process: V8 compiles the same code differently from one process to the next. */
  readonly starts: number
  readonly roundMs: number
  readonly warmMs: number
}

/** How long a subject may take for one order, in ms: the slowest takes less than a minute. */
const MAX_ANSWER_MS = 300_000

interface Worker {
  ask(order: WorkerOrder): Promise<WorkerReport>
  close(): Promise<void>
}

interface Runner {
  round(): Promise<Round>
  close(): Promise<void>
}

/** Runs rounds of all subjects in turn. Returns the rounds of each, in the order of `specs`. */
export async function interleave(specs: readonly BuiltSubjectSpec[], effort: Effort): Promise<readonly Round[][]> {
  const rounds = specs.map((): Round[] => [])
  for (let start = 0; start < effort.starts; start += 1) {
    const until = Math.round((effort.rounds * (start + 1)) / effort.starts)
    await addRounds(rounds, until, specs, effort)
  }
  return rounds
}

/** Starts a process for each subject and adds rounds until each has as many as `until` says. */
async function addRounds(
  rounds: readonly Round[][],
  until: number,
  specs: readonly BuiltSubjectSpec[],
  effort: Effort,
): Promise<void> {
  const runners: Runner[] = []
  try {
    for (const spec of specs) runners.push(await (spec.isFresh === true ? startFresh(spec) : startWarm(spec, effort)))
    for (let round = rounds[0]?.length ?? until; round < until; round += 1) {
      // Every other round runs backwards, so that no subject always comes first.
      const order = round % 2 === 0 ? runners.keys() : [...runners.keys()].reverse()
      for (const at of order) {
        const runner = runners[at]
        if (runner !== undefined) rounds[at]?.push(await runner.round())
      }
    }
  } finally {
    await Promise.all(runners.map((runner) => runner.close()))
  }
}

async function startWarm(spec: BuiltSubjectSpec, { warmMs, roundMs }: Effort): Promise<Runner> {
  const worker = await startWorker(spec)
  try {
    await worker.ask({ do: 'warm', forMs: warmMs, roundMs })
  } catch (error) {
    // A worker that goes on, for example with a Redis of its own, would keep the benchmark from ending.
    await worker.close()
    throw error
  }
  return { round: () => runRound(worker), close: () => worker.close() }
}

async function startFresh(spec: BuiltSubjectSpec): Promise<Runner> {
  const round = async (): Promise<Round> => {
    const worker = await startWorker(spec)
    try {
      return await runRound(worker)
    } finally {
      await worker.close()
    }
  }
  // The first round fills the disk cache.
  await round()
  return { round, close: () => Promise.resolve() }
}

async function runRound(worker: Worker): Promise<Round> {
  const report = await worker.ask({ do: 'round' })
  if (report.type !== 'round') throw new Error(`a worker of the benchmark answered a round with ${report.type}`)
  return report.round
}

async function startWorker(spec: BuiltSubjectSpec): Promise<Worker> {
  const child = fork(new URL('worker.js', import.meta.url), [JSON.stringify(spec)], { execArgv: ['--expose-gc'] })
  const subject = `${spec.create} ${JSON.stringify(spec.params)}`
  await nextReport(child, subject)
  return {
    ask: (order) => {
      const report = nextReport(child, subject)
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

/** @throws Error when the process ends, or says nothing for so long that it never will */
function nextReport(child: ChildProcess, subject: string): Promise<WorkerReport> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`${subject}: no answer within ${MAX_ANSWER_MS / 1000} s`))
      child.kill('SIGKILL')
    }, MAX_ANSWER_MS)
    const onMessage = (report: WorkerReport): void => {
      child.off('exit', onExit)
      clearTimeout(timer)
      if (report.type === 'failed') reject(new Error(report.error))
      else resolve(report)
    }
    const onExit = (code: number | null): void => {
      child.off('message', onMessage)
      clearTimeout(timer)
      reject(new Error(`a worker of the benchmark ended with ${code ?? 'a signal'}`))
    }
    child.once('message', onMessage)
    child.once('exit', onExit)
  })
}
