/** One load run: a server, instances that come and go, clients that come and go, and what the judge says of it. */
import { setTimeout as delay } from 'node:timers/promises'
import { startTaskServer } from '../../../src/server/index.js'
import { createBareClient, createTypedClient, type Client, type Stage } from './clients.js'
import { addBareWorker, addLocal, addWorker, type Member } from './fleet.js'
import { judge, type TaskMessage, type Verdict } from './judge.js'
import { createRandom } from './random.js'
import { createDiary } from './recorded-tools.js'

export interface LoadOptions {
  readonly seed: number
  readonly tasks: number
  readonly clients: number
  readonly instances: number
}

export interface LoadResult extends Verdict {
  /** What is left when everyone has gone: gauges that are not 0. */
  readonly leftovers: string[]
  /** One line for people. */
  readonly figures: string
}

/** An aborted command holds its lane no longer than this, in ms. */
const GRACE_MS = 20
const MAX_QUEUE = 60

export async function runLoad({ seed, tasks, clients, instances }: LoadOptions): Promise<LoadResult> {
  const begun = performance.now()
  const random = createRandom(seed)
  const server = await startTaskServer({
    port: 0,
    logLevel: 'silent',
    env: {},
    tasks: { wsPort: 0, abortGraceMs: GRACE_MS, maxQueueSize: MAX_QUEUE, maxRetained: tasks * 2 },
  })
  const messages: TaskMessage[] = []
  const extra: string[] = []
  const record = (message: TaskMessage): void => {
    messages.push(message)
    for (const [id, depth] of server.taskManager.laneDepths) {
      if (depth > MAX_QUEUE) extra.push(`S8: ${id} has ${depth} live tasks`)
    }
  }
  server.taskManager.on('progress', record).on('complete', record)

  const diary = createDiary()
  const fleet: Member[] = []
  for (let at = 0; at < instances; at += 1) {
    const id = `instance-${at}`
    if (at % 3 === 0) fleet.push(addLocal(server, diary, id, GRACE_MS))
    else if (at % 3 === 1) fleet.push(await addWorker(server, diary, id))
    else fleet.push(await addBareWorker(server, diary, id))
  }

  let left = tasks
  const stage: Stage = {
    socketUrl: server.wsUrl,
    instanceIds: fleet.map(({ id }) => id),
    taskIds: [],
    isOpen: () => left > 0,
    take: () => left > 0 && (left -= 1) >= 0,
    giveBack: () => (left += 1),
    counts: { refused: 0, cancels: 0, disconnects: 0, unanswered: 0 },
  }
  const all = Array.from({ length: clients }, (_, at): Client => {
    const create = at % 2 === 0 ? createBareClient : createTypedClient
    return create(`client-${at}`, random.fork(), stage)
  })

  const disturbances = { disconnect: 0, cut: 0, takeover: 0 }
  let isOver = false
  const disturb = async (own: ReturnType<typeof createRandom>): Promise<void> => {
    while (!isOver) {
      const member = own.pick(fleet)!
      if (!busy.has(member)) {
        busy.add(member)
        disturbances[await member.disturb()] += 1
        busy.delete(member)
      }
      await delay(own.below(40))
    }
  }
  const busy = new Set<Member>()
  const trouble = Promise.all(Array.from({ length: 3 }, () => disturb(random.fork())))
  await Promise.all(all.map((client) => client.act()))
  isOver = true
  await trouble
  while (server.taskManager.laneDepths.size > 0) await delay(5)
  await Promise.all(all.map((client) => client.finish()))
  await Promise.all(fleet.map((member) => member.end()))

  const leftovers = await gaugesOf(server.httpUrl)
  // In the order of their submission.
  const ids = server.taskManager
    .listTasks()
    .reverse()
    .map(({ id }) => id)
  const { lateResults } = server.taskManager
  await server.close({ drainMs: 0 })

  const unheard = stage.taskIds
    .filter((id) => !ids.includes(id))
    .map((id) => `S1: ${id} was accepted, and is not there`)
  const verdict = judge(
    { messages, submitted: () => ids },
    all.flatMap(({ transcripts }) => transcripts),
    all.flatMap(({ watches }) => watches),
  )
  const { completed = 0, failed = 0, cancelled = 0 } = verdict.byStatus
  const watched = all.reduce((sum, { watches }) => sum + watches.length, 0)
  const connections = all.reduce((sum, { transcripts }) => sum + transcripts.length, 0)
  const { refused, cancels, disconnects, unanswered } = stage.counts
  return {
    ...verdict,
    faults: [...verdict.faults, ...unheard, ...extra, ...diary.overlaps.map((text) => `S3: ${text}`)],
    leftovers,
    figures:
      `load: seed ${seed}: ${ids.length} tasks (${completed} completed, ${failed} failed, ${cancelled} cancelled; ${refused} refused) ` +
      `from ${clients} clients over ${fleet.length} instances in ${((performance.now() - begun) / 1000).toFixed(1)} s; ` +
      `${diary.calls} calls (${diary.aborted} aborted, ${lateResults} late results), ${verdict.events} events told ${verdict.told} times ` +
      `to ${connections} connections and ${watched} watches; ${cancels} cancels, ${disconnects} client disconnects ` +
      `(${unanswered} requests unanswered), instances: ${disturbances.disconnect} disconnects, ${disturbances.cut} cuts, ` +
      `${disturbances.takeover} take-overs; ${verdict.faults.length + unheard.length + extra.length + diary.overlaps.length} faults`,
  }
}

/** The server's own gauges, once everyone has gone. */
async function gaugesOf(url: string): Promise<string[]> {
  const gauge = /^agent_tasks_(queued|running|lane_depth|subscribed|connections)\b.* [^0]\S*$/
  let found: string[] = []
  // The last close may be on its way.
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const text = await (await fetch(`${url}/metrics`)).text()
    found = text.split('\n').filter((line) => gauge.test(line))
    if (found.length === 0) break
    await delay(20)
  }
  return found
}
