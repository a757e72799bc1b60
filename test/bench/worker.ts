/**
 * One process of the benchmark: it creates a subject and follows the orders of `interleave.ts`.
 *
 * Each subject has its own process, because code that another subject optimised, or a heap that it filled, would change the figure.
 */
import type { BuiltSubjectSpec, CreateSubject, Round, Subject } from './subject.js'

export type WorkerOrder =
  | { readonly do: 'warm'; readonly forMs: number; readonly roundMs: number }
  | { readonly do: 'round' }
  | { readonly do: 'close' }

export type WorkerReport =
  | { readonly type: 'ready' }
  | { readonly type: 'warm' }
  | { readonly type: 'round'; readonly round: Round }
  | { readonly type: 'failed'; readonly error: string }

/** How long a subject may take to close, in ms. */
const CLOSE_MS = 500

const spec = JSON.parse(process.argv[2] ?? '') as BuiltSubjectSpec
let times = 1

async function measure(subject: Subject, count: number): Promise<Round> {
  await subject.prepare?.(count)
  const cpu = process.cpuUsage()
  const wall = process.hrtime.bigint()
  // A synchronous subject must not pay for a promise.
  const result = subject.run(count)
  const own = result instanceof Promise ? await result : result
  const wallNs = Number(process.hrtime.bigint() - wall) / count
  const { user, system } = process.cpuUsage(cpu)
  const cpuNs = ((user + system) * 1000) / count
  const [durations, counts] = [subject.takeDurations?.() ?? [], subject.takeCounts?.() ?? {}]
  return { cpuNs, wallNs, ...(own !== undefined && { own }), durations, counts }
}

/** Runs until the code is optimised, and finds how many operations fill a round. */
async function warm(subject: Subject, forMs: number, roundMs: number): Promise<void> {
  // Processor time: on a busy machine the clock on the wall says nothing about what has run.
  const start = process.cpuUsage()
  const spentMs = (): number => {
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1000
  }
  const giveUpAt = performance.now() + forMs * 5
  let count = 1
  do {
    const { cpuNs } = await measure(subject, count)
    times = Math.max(1, Math.round((roundMs * 1e6) / Math.max(cpuNs, 1)))
    count = Math.min(times, count * 4)
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
  const subject = await create(spec.params, spec.checkout)
  const obey = async (order: WorkerOrder): Promise<void> => {
    if (order.do === 'warm') {
      await warm(subject, order.forMs, order.roundMs)
      report({ type: 'warm' })
    } else if (order.do === 'round') {
      // The garbage of earlier rounds is not part of this one.
      globalThis.gc?.({ type: 'minor' })
      report({ type: 'round', round: await measure(subject, times) })
    } else {
      await Promise.race([subject.close?.(), new Promise((resolve) => setTimeout(resolve, CLOSE_MS))])
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
