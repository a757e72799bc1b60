/**
 * `npm run store-fixture`: writes a store in the present layout, for the tests of later versions. Run it once for each layout, before the first version
 * with that layout is released. It never changes a file that exists.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDatabase } from '../src/store/sqlite/driver.js'
import { LAYOUT_VERSION } from '../src/store/sqlite/schema.js'
import { readStore, sqliteStore, type StoreChange } from '../src/store/index.js'
import type { StoredTask } from '../src/store/store.js'

const base = fileURLToPath(new URL(`../test/unit/store/fixtures/layout-${LAYOUT_VERSION}`, import.meta.url))

const common = { owner: 'main', attempt: 1, launchedAt: 1_790_000_000_000 } as const
const named = { subagentName: 'agent', goalPrompt: 'look into it' }
const ended = { ...common, completedAt: 1_790_000_001_000 } as const
const toTask = (row: Omit<StoredTask, 'record'>, record: object = {}): StoreChange => {
  const { run: _, ...fields } = row
  return { table: 'tasks', put: { ...row, record: { ...fields, ...named, ...record } } }
}

const changes: readonly StoreChange[] = [
  toTask({
    ...common,
    id: 'running',
    status: 'running',
    delivery: 'none',
    seq: 1,
    run: { graceMs: 5000, params: { a: [1] } },
  }),
  toTask(
    { ...ended, id: 'owed', status: 'completed', delivery: 'owed', seq: 2 },
    { output: { final_message: 'done' } },
  ),
  toTask(
    { ...ended, id: 'failed', status: 'failed', delivery: 'leased', seq: 3, attempt: 2 },
    { error: 'no luck', errorCode: 'ENOENT' },
  ),
  toTask(
    { ...ended, id: 'delivered', status: 'completed', delivery: 'delivered', seq: 4 },
    { output: {}, notifiedAt: 1_790_000_002_000 },
  ),
  toTask({ ...ended, id: 'cancelled', owner: 'other', status: 'cancelled', delivery: 'none', seq: 5 }),
  // Characters that a column of SQLite cannot hold unchanged.
  toTask(
    { ...ended, id: 'odd \0 "\u{1F600}', status: 'completed', delivery: 'owed', seq: 6 },
    { output: { text: 'a\0b\ud800' } },
  ),
  {
    table: 'deliveries',
    put: { id: 'delivery-1', owner: 'main', state: 'sent', at: 1_790_000_001_500, taskIds: ['failed'] },
  },
  {
    table: 'deliveries',
    put: { id: 'delivery-2', owner: 'main', state: 'accepted', at: 1_790_000_002_000, taskIds: ['delivered'] },
  },
  {
    table: 'commandTasks',
    put: {
      id: 'command',
      instanceId: 'browser',
      status: 'queued',
      seq: 1,
      createdAt: 1_790_000_000_000,
      record: { task_name: 'Add' },
      submission: { key: 'k' },
    },
  },
  {
    table: 'commands',
    put: { id: 'command/0', taskId: 'command', index: 0, outcome: { status: 'success', result: { content: [] } } },
  },
  { table: 'instances', put: { id: 'browser', secretSha256: 'ab'.repeat(32), registration: { tools: [] } } },
  { table: 'featureStates', put: { id: 'schedules/1', feature: 'schedules', data: { next: 1_790_000_003_000 } } },
  {
    table: 'turns',
    put: {
      id: '1/main',
      owner: 'main',
      seq: 1,
      at: 1_790_000_004_000,
      inputId: 'message-1',
      messages: [{ role: 'user', content: 'a\0b' }],
    },
  },
]

if (existsSync(`${base}.db`)) {
  console.log(`${base}.db exists already and was not changed`)
} else {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-fixture-'))
  const file = join(folder, 'tasks.db')
  const store = sqliteStore(file)
  store.open()
  await store.write(changes)
  store.close()
  // Copies the database into one file, without a separate write-ahead log.
  const database = openDatabase(file)
  database.prepare('VACUUM INTO ?').run(`${base}.db`)
  database.close()
  writeFileSync(`${base}.json`, `${JSON.stringify(readStore(file), undefined, 2)}\n`)
  rmSync(folder, { recursive: true })
  console.log(`${base}.db`)
}
