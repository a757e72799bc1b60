/** The types of `agent-tasks/store`. */
import { expectTypeOf } from 'vitest'
import { AsyncTaskManager, createAgentTasks } from 'agent-tasks'
import type { StoreError } from 'agent-tasks/store'
import { memoryStore, readStore, sqliteStore, type MemoryStore, type StoreContents } from 'agent-tasks/store'
import { storeContract } from 'agent-tasks/testing'
import type { Recovery } from '../../src/async-tasks/recovery/recovery.js'
import type { Store } from '../../src/store/store.js'
import { StoreInUseError } from '../../src/store/store-errors.js'
import type { RetryPolicy } from '../../src/protocol/retry-policy.js'

export async function aHostKeepsItsTasks(): Promise<void> {
  const manager = new AsyncTaskManager({
    store: sqliteStore('tasks.db'),
    wasDelivered: async (deliveryId) => Promise.resolve(deliveryId === 'a' ? true : undefined),
    findRunner: () => undefined,
  })
  expectTypeOf(await manager.recovered).toEqualTypeOf<Recovery>()
  expectTypeOf(manager.confirm('a')).toEqualTypeOf<boolean>()
  new AsyncTaskManager({ findRunner: () => ({ run: () => ({}), retry: { attempts: 2, on: ['interrupted'] } }) })
  // @ts-expect-error there is no such reason
  new AsyncTaskManager({ findRunner: () => ({ run: () => ({}), retry: { attempts: 2, on: ['always'] } }) })
  expectTypeOf<RetryPolicy['attempts']>().toEqualTypeOf<number>()
  expectTypeOf(manager.getTask('a')?.attempt).toEqualTypeOf<number | undefined>()
  createAgentTasks({
    subagents: { a: { run: (_request, { attempt }) => ({ attempt }), retry: { attempts: 2, on: ['timeout'] } } },
  })
  // @ts-expect-error the answer is a boolean, or undefined
  new AsyncTaskManager({ store: memoryStore(), wasDelivered: () => 'no' })
  // @ts-expect-error a store has methods
  new AsyncTaskManager({ store: 'tasks.db' })
}

export function aStoreIsAPort(): void {
  expectTypeOf(memoryStore()).toEqualTypeOf<MemoryStore>()
  expectTypeOf(memoryStore()).toExtend<Store>()
  expectTypeOf(readStore('tasks.db')).toEqualTypeOf<StoreContents>()
  void memoryStore().write([{ table: 'tasks', remove: 'a' }])
  // @ts-expect-error there is no such table
  void memoryStore().write([{ table: 'songs', remove: 'a' }])
  // @ts-expect-error a row of tasks has more fields
  void memoryStore().write([{ table: 'tasks', put: { id: 'a' } }])
  for (const { run } of storeContract(() => ({ store: memoryStore(), again: memoryStore }))) void run()
  expectTypeOf(new StoreInUseError('tasks.db', 1).pid).toEqualTypeOf<number | undefined>()
  expectTypeOf(new StoreInUseError('tasks.db', 1)).toExtend<StoreError>()
}
