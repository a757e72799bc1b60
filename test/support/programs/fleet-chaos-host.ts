/**
 * A host that the chaos test kills and pauses. It launches runs until SIGTERM, takes over what the host before it has left in its store, and prints how
 * each run ends. Each line of its output is JSON.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { bullmqRunner } from 'agent-tasks/bullmq'
import { AsyncTaskManager, type RunnerDefinition } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'
import { createRandom } from '../../bench/soak/random.js'
import { watchSilence } from '../chaos/silence.js'

/** The maximum number of runs at the same time. */
const MOST = 8

const [url = '', lockMs = '', file = '', life = '', seed = ''] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify({ ...line, at: Date.now() })}\n`)
watchSilence(say)
const over = new AbortController()
process.on('SIGTERM', () => over.abort())

const definition: RunnerDefinition = {
  run: bullmqRunner({ connection: url, queue: 'chaos', lockMs: Number(lockMs), log: (log) => console.error(log) }),
  retry: { attempts: 50, on: ['interrupted'], backoff: { initialMs: 0 } },
}
const manager = new AsyncTaskManager({
  store: sqliteStore(file),
  maxAsyncTasks: -1,
  findRunner: () => definition,
  onError: (error) => console.error(error),
})
await manager.recovered
const endedBefore = new Set(
  manager.getAllTasks().flatMap(({ id, status }) => (status === 'running' || status === 'queued' ? [] : [id])),
)

const followed = new Set<Promise<void>>()
const follow = (id: string): void => {
  const done = sayEnd(id).finally(() => followed.delete(done))
  followed.add(done)
}
async function sayEnd(id: string): Promise<void> {
  const { settled, deliveryId } = await manager.waitFor([id])
  const [task] = settled
  if (task === undefined) return
  const { status, attempt } = task
  const code = task.status === 'failed' ? task.errorCode : undefined
  // The output of a run is not stored. For a run that ended before this host began, it is unknown.
  say({
    ended: id,
    status,
    code,
    attempt: attempt ?? 1,
    ...(!endedBefore.has(id) && { text: manager.readOutput(id)?.text ?? '' }),
  })
  if (deliveryId !== undefined) manager.confirm(deliveryId)
}

for (const { id, delivery } of manager.getAllTasks()) if (delivery !== 'delivered') follow(id)
say({ recovered: followed.size })

const random = createRandom(Number(seed))
for (let n = 0; !over.signal.aborted; n += 1) {
  if (followed.size < MOST) {
    const [id, lines] = [`${life}.${n}`, 1 + random.below(5)]
    const ms = random.chance(0.2) ? random.below(8000) : random.below(1000)
    manager.launch({ id, subagentName: 'chaos', goalPrompt: `${lines} ${ms}` }, definition)
    await manager.stored()
    say({ launched: id, lines })
    follow(id)
  }
  await pause(random.below(400), undefined, { signal: over.signal }).catch(() => undefined)
}
while (followed.size > 0) await Promise.all(followed)
await manager.dispose()
process.exit(0)
