/** A process that owns a store in PostgreSQL, for tests that stop or kill it. It writes one row after another. Each line of its output is JSON. */
import { postgresStore } from 'agent-tasks/postgres'
import { openStore, StoreError } from 'agent-tasks/store'
import type { OpenStore } from '../../../src/store/open-store.js'

const [connection = '', schema = '', name = '', leaseMs = '500'] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
const codeOf = (error: unknown): string => (error instanceof StoreError ? error.code : String(error))

async function writeRows(store: OpenStore): Promise<void> {
  for (let count = 1; ; count += 1) {
    const id = `${name} ${count}`
    await store.write([{ table: 'instances', put: { id, secretSha256: 'x', registration: {} } }])
    say({ acknowledged: id })
  }
}

try {
  const store = await openStore(postgresStore({ connection, schema, leaseMs: Number(leaseMs) }))
  say({ found: store.open().instances.map(({ id }) => id) })
  await writeRows(store)
} catch (error) {
  say({ ended: codeOf(error), message: (error as Error).message })
  process.exit()
}
