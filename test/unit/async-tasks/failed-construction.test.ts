/** Managers that cannot be created: the store is free afterwards, and nothing of what it holds was touched. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { RUN_TOKEN } from '../../../src/engine/run-token.js'
import { AsyncTaskManager, createAgentTasks, processRunner } from '../../../src/index.js'
import { identityOf } from '../../../src/system/process-identity.js'
import { InstanceManager, TaskManager } from '../../../src/server/index.js'
import { memoryStore, sqliteStore, StoreError, type StoreChange } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'

let file: string

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-construction-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

function refusal(create: () => unknown): StoreError {
  try {
    create()
  } catch (error) {
    expect(error).toBeInstanceOf(StoreError)
    return error as StoreError
  }
  throw new Error('it was created')
}

const row = (id: string, record: object = {}, fields: object = {}): StoreChange => {
  const common = { id, owner: 'main', status: 'running', delivery: 'none', attempt: 1, seq: 1, launchedAt: 1 } as const
  const put = { ...common, record: { ...common, subagentName: 'program', goalPrompt: 'goal', ...record }, ...fields }
  return { table: 'tasks', put: put }
}

async function storeWith(...changes: readonly StoreChange[]): Promise<void> {
  const store = sqliteStore(file)
  store.open()
  await store.write(changes)
  store.close()
}

/** The store is free, and has what it had. */
function expectFree(count: number): void {
  const store = sqliteStore(file)
  expect(store.open().tasks).toHaveLength(count)
  store.close()
}

it.each([
  ['a field of a record', row('bad', { error: 5 }), 'row.record.error: got 5, expected a string'],
  ['the id of a record', row('bad', { id: 'other' }), 'row.record.id: got "other", expected the id of the row'],
  ['no record', row('bad', {}, { record: null }), 'row.record: got null, expected an object'],
  ['an attempt', row('bad', {}, { attempt: 'x' }), 'row.attempt: got "x", expected a number'],
  ['a run', row('bad', {}, { run: [] }), 'row.run: got an empty array, expected a record'],
] as const)(
  'K11: a row with something else in place of %s is named, and the store is free',
  async (_what, bad, reason) => {
    await storeWith(row('good', {}, { seq: 2 }), bad)
    const store = sqliteStore(file)
    const { code, message } = refusal(() => new AsyncTaskManager({ store }))
    expect(code).toBe('STORE_DAMAGED')
    expect(message).toBe(`${file}: the row "bad" of table tasks is invalid: ${reason}.`)
    expectFree(2)
    expect(refusal(() => createAgentTasks({ store })).message).toBe(message)
    expectFree(2)
  },
)

it('K11: a delivery that is none is named', async () => {
  await storeWith({ table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: 5 as never } })
  const { message } = refusal(() => new AsyncTaskManager({ store: sqliteStore(file) }))
  expect(message).toBe(`${file}: the row "d" of table deliveries is invalid: row.taskIds: got 5, expected an array.`)
  expectFree(0)
})

it('K11: a command task that is none is named, and the store is free', async () => {
  const put = { id: 'bad', instanceId: 'x', status: 'queued', seq: 1, createdAt: 1, record: { name: 5 } }
  await storeWith({ table: 'commandTasks', put })
  const instances = new InstanceManager()
  const { code, message } = refusal(() => new TaskManager({ instances, store: sqliteStore(file) }))
  expect(code).toBe('STORE_DAMAGED')
  expect(message).toContain(`${file}: the row "bad" of table commandTasks is invalid: row.`)
  expectFree(0)
  expect(() => new TaskManager({ instances })).not.toThrow()
})

it('K7, K11: nothing is ended or written for a store with a row that is none', async () => {
  const token = globalThis.crypto.randomUUID()
  const child = spawn('sh', ['-c', 'echo ready; exec sleep 60'], {
    env: { ...process.env, [RUN_TOKEN]: token },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'] as const,
  })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const identity = identityOf(child.pid ?? 0)
  const run = { graceMs: 0, params: {}, program: { identity, token } }
  await storeWith(row('good', {}, { run }), row('bad', { error: 5 }, { seq: 2 }))
  const definition = { run: processRunner({ command: 'true' }), retry: { attempts: 2, on: ['interrupted'] as const } }
  refusal(() => new AsyncTaskManager({ store: sqliteStore(file), findRunner: () => definition }))
  expect(child.killed || child.signalCode !== null).toBe(false)
  expect(identityOf(child.pid ?? 0)).toEqual(identity)
  const store = sqliteStore(file)
  expect(store.open().tasks).toMatchObject([{ id: 'good', attempt: 1 }, { id: 'bad' }])
  store.close()
})

it('K9: restore() with a record that is none leaves the store free', () => {
  const store = sqliteStore(file)
  const record = { id: 'a', subagentName: 'agent', goalPrompt: '', status: 'running', launchedAt: 1 } as const
  expect(() => AsyncTaskManager.restore([record, record], { store })).toThrow('records[1].id')
  expectFree(0)
  expect(() => AsyncTaskManager.restore([record], { store, maxAsyncTasks: -5 })).toThrow('maxAsyncTasks')
  expectFree(0)
})

it('K9: telemetry that throws leaves the store free, and no timer', () => {
  const store = memoryStore()
  const clock = createManualClock()
  const telemetry = {
    start: () => ({}),
    within: () => undefined,
    current: () => undefined,
    watch: () => {
      throw new Error('no meter')
    },
  } as never
  expect(() => new AsyncTaskManager({ store, telemetry, clock })).toThrow('no meter')
  expect(clock.pending).toBe(0)
  store.open()
  store.close()
})

it('K11: a manager that cannot be created is not watched by its telemetry', async () => {
  await storeWith(row('bad', { error: 5 }))
  const watched: unknown[] = []
  const stop = vi.fn()
  const telemetry = {
    start: () => expect.unreachable(),
    current: () => undefined,
    within: () => expect.unreachable(),
    watch: (source: unknown) => {
      watched.push(source)
      return stop
    },
  }
  const store = sqliteStore(file)
  refusal(() => new AsyncTaskManager({ store, clock: createManualClock(), telemetry: telemetry as never }))
  expect(watched).toHaveLength(1)
  expect(stop).toHaveBeenCalledOnce()
  expectFree(1)
})
