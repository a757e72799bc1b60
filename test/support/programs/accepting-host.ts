/**
 * A host that keeps its messages in the database of its store, for tests that stop or kill it in the turn that delivers a result. It prints each point of
 * the turn as a line, and goes on from the point that its last argument names when it reads a line.
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Client } from 'pg'
import { createAgentTasks } from 'agent-tasks'
import { postgresStore } from 'agent-tasks/postgres'
import { openStore } from 'agent-tasks/store'

const [connection = '', schema = '', waitsAt = ''] = process.argv.slice(2)
const lines = createInterface(process.stdin)

async function reach(point: string): Promise<void> {
  console.log(point)
  if (point === waitsAt) await once(lines, 'line')
}

const client = new Client({ connectionString: connection })
await client.connect()
const tasks = createAgentTasks({
  store: await openStore(postgresStore({ connection, schema, leaseMs: 500 })),
  keepTurns: 0,
  subagents: { work: ({ goal }) => `result of ${goal}` },
  onError: () => undefined,
  respond: async ({ delivery }) => {
    await reach('turn')
    await client.query('BEGIN')
    try {
      await client.query(`INSERT INTO ${schema}_messages VALUES ($1)`, [delivery?.deliveryId])
      await delivery?.acceptIn(client)
      await reach('accepted')
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      console.log((error as { code?: string }).code)
      throw error
    }
    await reach('committed')
  },
})
tasks.conversation('ann').launch('work', 'a')
