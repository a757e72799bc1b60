/** Durable lives of async tasks in a PostgreSQL. */
import { startPostgres } from '../../support/postgres-server.js'
import { importEntry } from '../package.js'
import type { Subject } from '../subject.js'
import { livesOf } from './stores.js'

/** The lives of `durableLives`, on a server of their own. */
export async function livesOnServer({ atOnce }: { readonly atOnce: number }, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const { openStore } = await importEntry(checkout, './store')
  const { postgresStore } = await importEntry(checkout, './postgres')
  const server = await startPostgres()
  const store = await openStore(postgresStore({ connection: server.url, session: 'bench' }))
  return livesOf(new AsyncTaskManager({ maxAsyncTasks: atOnce, store }), atOnce, () => server.close())
}
