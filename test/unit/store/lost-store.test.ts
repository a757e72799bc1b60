/** What becomes of the tasks of a store that another owner has taken over. */
import { getEventListeners } from 'node:events'
import { createManualClock } from 'agent-tasks/testing'
import { memoryStore, StoreError, type Store } from 'agent-tasks/store'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { createCommandHost } from '../../support/command-host.js'
import { waitFor } from '../../support/wait-for.js'

/** A store that `lose` loses: what is written from then on is refused. */
function losableStore() {
  const memory = memoryStore()
  const lost = new AbortController()
  const error = new StoreError('STORE_LOST', 'another owner has taken over')
  let writes = 0
  const store: Store = {
    ...memory,
    lost: lost.signal,
    write: async (changes) => {
      writes += 1
      if (lost.signal.aborted) throw error
      await memory.write(changes)
    },
  }
  return {
    store,
    memory,
    error,
    lose: () => lost.abort(error),
    listeners: () => getEventListeners(lost.signal, 'abort').length,
    writes: () => writes,
  }
}

it('are cancelled, their runs are aborted, nothing of it is notified, and the store is not written again and again', async () => {
  const { store, memory, error, lose, listeners, writes } = losableStore()
  const clock = createManualClock()
  const reported: unknown[] = []
  const manager = new AsyncTaskManager({ store, clock, onError: (each) => reported.push(each) })
  const seen: string[] = []
  manager.onTaskCancelled(({ id }) => seen.push(id))
  let aborted: unknown
  manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, (_input, { signal }) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        aborted = signal.reason
        reject(signal.reason as Error)
      })
    })
  })
  await manager.stored()
  const before = memory.contents()
  lose()
  await waitFor(() => expect(aborted).toBeDefined())
  expect(manager.getTask('a')).toMatchObject({ status: 'cancelled', cancelReason: 'the store was lost' })
  expect([seen, memory.contents()]).toEqual([[], before])
  expect(reported.filter((each) => each !== error)).toEqual([])
  const tried = writes()
  clock.advance(3_600_000)
  await Promise.resolve()
  expect(writes()).toBe(tried)
  await manager.dispose()
  expect([listeners(), clock.pending]).toEqual([0, 0])
})

it('of a task manager are cancelled', async () => {
  const { store, lose, listeners } = losableStore()
  const host = createCommandHost({ store })
  onTestFinished(() => host.dispose().then(() => undefined))
  host.connect()
  const id = host.submit(['a', 'b'])
  await host.tasks.stored()
  lose()
  expect(host.tasks.getTask(id)).toMatchObject({ status: 'cancelled' })
  await host.dispose()
  expect(listeners()).toBe(0)
})

it('of a store that was lost before are cancelled when they are taken over', async () => {
  const { store, memory, lose } = losableStore()
  memory.open()
  await memory.write([
    {
      table: 'tasks',
      put: {
        id: 'a',
        owner: 'main',
        status: 'completed',
        delivery: 'owed',
        attempt: 1,
        seq: 1,
        launchedAt: 1,
        completedAt: 2,
        record: {
          id: 'a',
          subagentName: 's',
          goalPrompt: 'g',
          owner: 'main',
          status: 'completed',
          delivery: 'owed',
          launchedAt: 1,
          startedAt: 1,
          completedAt: 2,
          output: { final_message: 'done' },
        },
      },
    },
  ])
  memory.close()
  lose()
  const errors: unknown[] = []
  const manager = new AsyncTaskManager({ store, onError: (error) => errors.push(error) })
  await manager.recovered
  const lease = manager.lease()
  await expect(lease?.stored).rejects.toMatchObject({ code: 'STORE_LOST' })
  expect(manager.getPendingNotifications()).toHaveLength(1)
  expect(errors.length).toBeGreaterThan(0)
  await manager.dispose()
})
