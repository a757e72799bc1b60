/** The types of `agent-tasks/postgres`. */
import { expectTypeOf } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { postgresStore, type PostgresClient } from 'agent-tasks/postgres'
import { startTaskServer } from 'agent-tasks/server'
import { openStore, type RemoteStore } from 'agent-tasks/store'
import type { OpenStore } from '../../src/store/open-store.js'

export async function aHostWithoutADisk(connect: () => Promise<PostgresClient>): Promise<void> {
  const remote = postgresStore({
    connection: 'postgres://localhost/tasks',
    schema: 'agents',
    session: 'a',
    leaseMs: 5000,
  })
  expectTypeOf(remote).toEqualTypeOf<RemoteStore>()
  const store = await openStore(remote)
  expectTypeOf(store).toEqualTypeOf<OpenStore>()
  new AsyncTaskManager({ store })
  void startTaskServer({ store })
  postgresStore({ connection: { host: 'db', user: 'agent', password: () => 'token', ssl: true } })
  postgresStore({ connection: connect })
  // @ts-expect-error it is not open
  new AsyncTaskManager({ store: remote })
  // @ts-expect-error where the database is must be said
  postgresStore({})
  // @ts-expect-error ms are a number
  postgresStore({ connection: connect, leaseMs: '5s' })
}
