/** The clients of the nodes, and the instances on which the clients' tasks run. Each records what it sees. */
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom, type Random } from '../../bench/soak/random.js'
import { call, taskFor, type Answer, type SeenTask } from '../cluster-client.js'
import { connectWatched, type WatchedInstance } from '../cluster-instance.js'
import type { Work } from './judge.js'

/** How long a client waits for an answer, in ms. */
const ANSWER_MS = 3000

/** The HTTP statuses of a server that cannot take a task at the moment. */
const REFUSALS = [409, 429, 503]

export interface ClientOptions {
  readonly url: string
  readonly seed: number
  readonly instances: number
  readonly clients: number
  /** The interval of heartbeats, in ms. An instance closes a connection on which it heard nothing for twice this time. */
  readonly heartbeatMs: number
}

interface Submitted extends Work {
  taskId?: string
}

export interface Clients {
  /** Ends the submissions. Resolves with all tasks and their ends, after at most `limitMs`. */
  finish(limitMs: number): Promise<readonly Work[]>
}

/** Connects the instances, and starts clients that submit to all of them until `finish`. */
export async function startClients(options: ClientOptions): Promise<Clients> {
  const { url, seed, heartbeatMs } = options
  const names = Array.from({ length: options.instances }, (_, at) => `i${at}`)
  const instances = await Promise.all(names.map((name) => connectWatched(url, name, heartbeatMs)))
  const works: Submitted[] = []
  const over = new AbortController()
  const clients = Array.from({ length: options.clients }, async (_, client) => {
    const random = createRandom(seed * 1000 + client)
    for (let n = 0; !over.signal.aborted; n += 1) {
      const work = { name: `c${client}.${n}`, lane: random.pick(names), sentAt: Date.now(), ends: [], deeds: [] }
      works.push(work)
      await submit(url, work, random)
      await pause(random.below(300))
    }
  })
  return {
    finish: async (limitMs) => {
      over.abort()
      const until = Date.now() + limitMs
      await Promise.race([Promise.all(clients), pause(limitMs, undefined, { ref: false })])
      const accepted = works.filter(({ taskId }) => taskId !== undefined)
      const readers = Array.from({ length: 8 }, async () => {
        for (let work = accepted.pop(); work !== undefined; work = accepted.pop()) await readEnd(url, work, until)
      })
      await Promise.all(readers)
      noteDeeds(works, instances)
      return works
    },
  }
}

/**
 * Submits a task as clients do. A request that was refused, or not answered, is repeated with the same idempotency key. Some clients give up when they
 * are refused.
 */
async function submit(url: string, work: Submitted, random: Random): Promise<void> {
  const [ms, isPatient] = [random.chance(0.1) ? random.below(400) : random.below(20), random.chance(0.8)]
  const task = JSON.stringify(taskFor(work.lane, 'do', { mark: work.name, ms }))
  const headers = { 'content-type': 'application/json', 'idempotency-key': work.name }
  for (let areRefusals = true; ;) {
    const answer = await ask(url, '/tasks', { method: 'POST', body: task, headers })
    if (answer?.status === 201) {
      work.taskId = String(answer.body['taskId'])
      work.answeredAt = Date.now()
      return
    }
    if (answer !== undefined && !REFUSALS.includes(answer.status)) {
      work.answeredAt = Date.now()
      work.ends.push({ status: 'failed', code: JSON.stringify(answer), at: work.answeredAt, attempt: 1 })
      return
    }
    areRefusals &&= answer !== undefined
    if (areRefusals && !isPatient) {
      work.isRefused = true
      return
    }
    await pause(50)
  }
}

const ask = (url: string, path: string, init: Parameters<typeof call>[2] = {}): Promise<Answer | undefined> =>
  call(url, path, { ...init, signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => undefined)

async function readEnd(url: string, work: Submitted, until: number): Promise<void> {
  let answer: Answer | undefined
  do {
    answer = await ask(url, `/tasks/${work.taskId}`)
    const task = answer?.body['task'] as (SeenTask & { readonly completedAt?: number }) | undefined
    if (task?.completedAt !== undefined) {
      const { status, error, completedAt } = task
      work.ends.push({ status, code: error?.code, at: completedAt, attempt: 1 })
      return
    }
    await pause(100)
  } while (Date.now() < until)
  work.lastSeen = JSON.stringify(answer?.body)
}

function noteDeeds(works: readonly Work[], instances: readonly WatchedInstance[]): void {
  const byName = new Map(works.map((work) => [work.name, work]))
  for (const { mark, step, at } of instances.flatMap(({ deeds }) => deeds)) {
    const deeds = byName.get(mark)?.deeds ?? []
    const open = deeds.find(({ to }) => to === undefined)
    if (step === 'start') deeds.push({ attempt: 1, from: at, to: undefined, pid: 0 })
    else if (open !== undefined) open.to = at
  }
}
