/** A manager on a store of which one write fails: each write of a scenario in turn. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskInfo, type Runner } from '../../../src/index.js'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import type { TaskLease } from '../../../src/parts.js'

/** `none`: nothing of the batch is written. `all`: it is written, and the process dies before it can know. */
type Fault = { readonly at: number; readonly writes: 'none' | 'all'; readonly times: number }

const isRefused = (task: AsyncTaskInfo | undefined): boolean =>
  task?.status === 'failed' && task.errorCode === 'NOT_STORED'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function setUp(fault: Fault | undefined) {
  const memory = memoryStore()
  const clock = createManualClock()
  const transcript = new Map<string, readonly string[]>()
  const problems: string[] = []
  const ended: string[] = []
  /** The tasks whose launches are stored, as the host knows. */
  const admitted: string[] = []
  let writes = 0
  /** What the next process would find when this one dies at the fault. */
  let crash:
    { readonly store: MemoryStore; readonly told: readonly string[]; readonly ids: readonly string[] } | undefined
  const store: Store = {
    ...memory,
    write: async (changes) => {
      writes += 1
      const isFaulty = fault !== undefined && writes >= fault.at && writes < fault.at + fault.times
      if (!isFaulty || fault.writes === 'all') await memory.write(changes)
      if (!isFaulty) return
      crash ??= {
        store: memory.copy(),
        told: [...transcript.values()].flat(),
        ids: [...admitted],
      }
      throw new StoreError('STORE_FULL', 'the disk is full')
    },
  }
  const stored = (id: string) => memory.contents().tasks.find((task) => task.id === id)
  const manager = new AsyncTaskManager({ store, clock, maxAsyncTasks: -1, graceMs: 0, onError: () => undefined })
  onTestFinished(() => manager.dispose())
  manager.settled$.subscribe((task) => {
    const { id, status } = task
    if (isRefused(task)) return
    ended.push(id)
    if (stored(id)?.status !== status) problems.push(`${id} was notified before its end was stored`)
  })
  /** A lease that may be refused. */
  const tryLease = async (): Promise<TaskLease | undefined> => {
    try {
      const lease = manager.lease()
      await lease?.stored
      return lease
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return undefined
    }
  }
  /** The launches of this tick are written, or refused. */
  const settleLaunches = async (...ids: string[]): Promise<void> => {
    await tick()
    admitted.push(...ids.filter((id) => !isRefused(manager.getTask(id))))
  }
  const run: Runner = ({ id }, { signal }) => {
    if (stored(id)?.status !== 'running') problems.push(`${id} ran before its launch was stored`)
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
  }
  const deliver = async (): Promise<void> => {
    const lease = await tryLease()
    if (lease === undefined) return
    const row = memory.contents().deliveries.find(({ id }) => id === lease.deliveryId)
    if (row?.state !== 'sent') problems.push(`${lease.deliveryId} was handed out before it was stored`)
    transcript.set(
      lease.deliveryId,
      lease.tasks.map(({ id }) => id),
    )
    lease.acknowledge()
  }
  return {
    manager,
    clock,
    memory,
    transcript,
    problems,
    ended,
    admitted,
    settleLaunches,
    run,
    deliver,
    stored,
    writesOf: () => writes,
    crashOf: () => crash,
  }
}

async function play(fault?: Fault) {
  const host = setUp(fault)
  const { manager, clock, settleLaunches, run, deliver, transcript } = host
  const task = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'look' })
  manager.launch(task('a'), run)
  await settleLaunches('a')
  manager.registerTask(task('b'))
  await settleLaunches('b')
  for (const id of ['c', 'd']) manager.registerTask(task(id))
  await settleLaunches('c', 'd')
  manager.completeTask('b', { final_message: 'b' })
  manager.failTask('c', 'no luck')
  await tick()
  await deliver()
  await tick()
  manager.cancelTask('a')
  await tick()
  manager.completeTask('d', {})
  await tick()
  const waited = await manager.waitFor(['d']).catch((error: unknown) => {
    if (!(error instanceof StoreError)) throw error
    return undefined
  })
  if (waited?.deliveryId !== undefined) transcript.set(waited.deliveryId, ['d'])
  await tick()
  manager.confirm(waited?.deliveryId ?? '')
  // The disk is writable again.
  for (let round = 0; round < 10; round += 1) {
    clock.advance(30_000)
    await tick()
    await deliver()
  }
  await tick()
  return host
}

/** How many writes the scenario has when none fails. */
const WRITES = 11
const places = Array.from({ length: WRITES }, (_, at) => at + 1)
const faultsThat = (writes: Fault['writes']): Fault[] =>
  places.flatMap((at) => [1, 3].map((times) => ({ at, writes, times })))

it('every write of the scenario fails once', async () => {
  expect((await play()).writesOf()).toBe(WRITES)
})

describe.each(faultsThat('none'))('write $at fails $times time(s)', (fault) => {
  it('K10: nothing is notified, handed out or run before it is stored, and everything once', async () => {
    const { manager, memory, problems, ended, admitted, transcript } = await play(fault)
    expect(problems).toEqual([])
    expect([...ended].sort()).toEqual([...admitted].sort())
    const told = [...transcript.values()].flat()
    expect(told.sort()).toEqual(admitted.filter((id) => id !== 'a'))
    const shown = ({ id, status, delivery }: { id: string; status: string; delivery: string }) => [id, status, delivery]
    const kept = manager.getAllTasks().filter((task) => !isRefused(task))
    expect(memory.contents().tasks.map(shown).sort()).toEqual(kept.map(shown).sort())
  })
})

describe.each([...faultsThat('none'), ...faultsThat('all')])(
  'write $at fails, and $writes of it is written',
  (fault) => {
    it('K2: a crash at the fault loses nothing and repeats nothing', async () => {
      const { crashOf } = await play(fault)
      const { store, told, ids } = crashOf()!
      const deliveries = new Set(told)
      const rows = new Map(store.contents().deliveries.map(({ id, taskIds }) => [id, taskIds]))
      const next = new AsyncTaskManager({
        store,
        clock: createManualClock(),
        onError: () => undefined,
        wasDelivered: (id) => rows.get(id)?.some((taskId) => deliveries.has(taskId)) === true,
      })
      onTestFinished(() => next.dispose())
      await next.recovered
      const owed = next.getPendingNotifications().map(({ id }) => id)
      const cancelled = next.getAllTasks().flatMap(({ id, status }) => (status === 'cancelled' ? [id] : []))
      expect(owed.filter((id) => deliveries.has(id))).toEqual([])
      expect(ids.filter((id) => !deliveries.has(id) && !owed.includes(id) && !cancelled.includes(id))).toEqual([])
    })
  },
)
