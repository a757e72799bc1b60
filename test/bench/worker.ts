/**
 * One process of the benchmark: it makes a subject and does what it is told, one message at a time.
 *
 * Each subject has a process of its own, so that none runs on code that was optimised, or a heap that was filled, by another.
 */
import type { CreateSubject, Subject, SubjectSpec } from './subject.js'

export type WorkerOrder =
  | { readonly do: 'warm'; readonly forMs: number; readonly roundMs: number }
  | { readonly do: 'round' }
  | { readonly do: 'close' }

export type WorkerReport =
  | { readonly type: 'ready' }
  | { readonly type: 'warm'; readonly times: number }
  | { readonly type: 'round'; readonly round: Round }
  | { readonly type: 'failed'; readonly error: string }

/** One timed round, an operation. */
export interface Round {
  /** Processor time of the whole process, its garbage collector included. */
  readonly cpuNs: number
  readonly wallNs: number
  readonly durations: readonly number[]
}

const spec = JSON.parse(process.argv[2] ?? '') as SubjectSpec
let times = 1

async function measure(subject: Subject, count: number): Promise<Round> {
  await subject.prepare?.(count)
  const cpu = process.cpuUsage()
  const wall = process.hrtime.bigint()
  // A subject that is not asynchronous must not pay for a promise.
  const result = subject.run(count)
  const own = result instanceof Promise ? await result : result
  const wallNs = Number(process.hrtime.bigint() - wall)
  const { user, system } = process.cpuUsage(cpu)
  const durations = subject.takeDurations?.() ?? []
  if (own !== undefined) return { cpuNs: own.ns / count, wallNs: own.ns / count, durations }
  return { cpuNs: ((user + system) * 1000) / count, wallNs: wallNs / count, durations }
}

/** Runs until it is warm, and finds how many operations make a round. */
async function warm(subject: Subject, forMs: number, roundMs: number): Promise<void> {
  // Processor time: on a busy machine, time passes without anything getting warm.
  const begun = process.cpuUsage()
  const spentMs = (): number => {
    const { user, system } = process.cpuUsage(begun)
    return (user + system) / 1000
  }
  const giveUpAt = performance.now() + forMs * 5
  let count = 1
  do {
    const { cpuNs } = await measure(subject, count)
    const fitting = Math.round((roundMs * 1e6) / Math.max(cpuNs, 1))
    times = Math.max(1, fitting)
    count = Math.max(1, Math.min(fitting, count * 4))
  } while (spentMs() < forMs && performance.now() < giveUpAt)
}

function report(message: WorkerReport): void {
  process.send?.(message)
}

async function main(): Promise<void> {
  const module = (await import(new URL(`subjects/${spec.module}.js`, import.meta.url).href)) as Record<
    string,
    CreateSubject | undefined
  >
  const create = module[spec.create]
  if (create === undefined) throw new Error(`subjects/${spec.module} has no ${spec.create}`)
  const subject = await create(spec.params)
  const obey = async (order: WorkerOrder): Promise<void> => {
    if (order.do === 'warm') {
      await warm(subject, order.forMs, order.roundMs)
      report({ type: 'warm', times })
    } else if (order.do === 'round') {
      // What the rounds of before left behind is not this round's to clear up.
      globalThis.gc?.({ type: 'minor' })
      report({ type: 'round', round: await measure(subject, times) })
    } else {
      // What does not close at once is not waited for: nobody counts on it any more.
      await Promise.race([subject.close?.(), new Promise((resolve) => setTimeout(resolve, 500))])
      process.exit()
    }
  }
  process.on('message', (order: WorkerOrder) => {
    obey(order).catch(fail)
  })
  report({ type: 'ready' })
}

function fail(error: unknown): void {
  report({ type: 'failed', error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
}

main().catch(fail)
