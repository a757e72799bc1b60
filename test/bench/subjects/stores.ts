/** Durable lives of async tasks and their recovery, beside the same rows in the same driver without any of this package. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AsyncTaskManager } from 'agent-tasks'
import type { PastTask } from 'agent-tasks/store'
import { importEntry } from '../package.js'
import type { Subject } from '../subject.js'
import type { StoredTask } from '../../../src/store/store.js'

const OUTPUT = { final_message: 'done' }
const GOAL = 'look into it'

/** Removed by whoever closes the subject. */
function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'agent-tasks-bench-'))
}

const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** A task as its owner's manager stores it, when its result is owed or delivered. */
function storedTask(n: number, delivery: 'owed' | 'delivered'): StoredTask {
  const id = `agent-${n}`
  const fields = { id, owner: 'main', status: 'completed', delivery, seq: n, launchedAt: n, completedAt: n } as const
  const record = { ...fields, subagentName: 'agent', goalPrompt: GOAL, output: OUTPUT }
  return { ...fields, attempt: 1, record }
}

/** Launch, end, lease, acknowledge: each in its turn, `atOnce` tasks together. */
export async function durableLives({ atOnce }: { readonly atOnce: number }, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const { sqliteStore } = await importEntry(checkout, './store')
  const folder = newFolder()
  const manager = new AsyncTaskManager({ maxAsyncTasks: atOnce, store: sqliteStore(join(folder, 'tasks.db')) })
  return livesOf(manager, atOnce, () => remove(folder))
}

/** The lives of a manager's tasks; `close` runs when it was disposed. */
export async function livesOf(
  manager: AsyncTaskManager,
  atOnce: number,
  close: () => void | Promise<void>,
): Promise<Subject> {
  await manager.recovered
  const ends: (() => void)[] = []
  const runner = () => new Promise<typeof OUTPUT>((resolve) => ends.push(() => resolve(OUTPUT)))
  return {
    run: async (times) => {
      for (let done = 0; done < times; done += 1) {
        for (let n = 0; n < atOnce; n += 1) manager.launch({ subagentName: 'agent', goalPrompt: GOAL }, runner)
        await whenStored(manager)
        for (const end of ends.splice(0)) end()
        await whenStored(manager)
        const lease = manager.lease()
        await lease?.stored
        lease?.acknowledge()
        await whenStored(manager)
      }
      return undefined
    },
    close: async () => {
      await manager.dispose()
      await close()
    },
  }
}

/** A run has started, and its end is known, in the turn after the write. */
async function whenStored(manager: AsyncTaskManager): Promise<void> {
  await manager.stored()
  await new Promise(setImmediate)
}

/** Timers of 1 ms, each after the last, while tasks live in a store whose commits block the thread for longer. Durations are in ms. */
export async function timerBesideTasks(
  { tasksPerSecond, commitMs }: { readonly tasksPerSecond: number; readonly commitMs: number },
  checkout: string,
): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const { sqliteStore } = await importEntry(checkout, './store')
  const folder = newFolder()
  const file = sqliteStore(join(folder, 'tasks.db'))
  const slowly = new Int32Array(new SharedArrayBuffer(4))
  const write: typeof file.write = (changes) => {
    Atomics.wait(slowly, 0, 0, commitMs)
    return file.write(changes)
  }
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, store: { ...file, write } })
  await manager.recovered
  const live = async (): Promise<void> => {
    const { id } = manager.launch({ subagentName: 'agent', goalPrompt: GOAL }, () => Promise.resolve(OUTPUT))
    await manager.waitFor([id])
    const lease = manager.lease()
    await lease?.stored
    lease?.acknowledge()
  }
  const durations: number[] = []
  return {
    run: async (times) => {
      const lives: Promise<void>[] = []
      const launches = setInterval(() => lives.push(live()), 1000 / tasksPerSecond)
      for (let done = 0; done < times; done += 1) {
        const start = performance.now()
        await new Promise((resolve) => setTimeout(resolve, 1))
        durations.push(performance.now() - start)
      }
      clearInterval(launches)
      await Promise.all(lives)
      return undefined
    },
    takeDurations: () => durations.splice(0),
    close: async () => {
      await manager.dispose()
      remove(folder)
    },
  }
}

interface Database {
  exec(sql: string): void
  prepare(sql: string): { run(...values: unknown[]): void; all(): Record<string, unknown>[] }
  close(): void
}

/** The driver that the package uses on this version of Node. */
function openByHand(file: string): Database {
  const require = createRequire(import.meta.url)
  const own = process.getBuiltinModule('node:process').versions['sqlite'] ?? '0'
  const isSafe = own.localeCompare('3.51.3', undefined, { numeric: true }) >= 0
  const { DatabaseSync } = require(isSafe ? 'node:sqlite' : '@photostructure/sqlite') as {
    readonly DatabaseSync: new (file: string) => Database
  }
  const database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  database.exec('CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY, body TEXT NOT NULL)')
  database.exec('CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY, body TEXT NOT NULL)')
  return database
}

/** The rows of those lives, in the same transactions. */
export function handwrittenLives({ atOnce }: { readonly atOnce: number }): Subject {
  const folder = newFolder()
  const database = openByHand(join(folder, 'tasks.db'))
  const put = database.prepare('INSERT OR REPLACE INTO tasks VALUES (?, ?)')
  const drop = database.prepare('DELETE FROM tasks WHERE id = ?')
  const putDelivery = database.prepare('INSERT OR REPLACE INTO deliveries VALUES (?, ?)')
  const dropDelivery = database.prepare('DELETE FROM deliveries WHERE id = ?')
  const inTransaction = (write: () => void): void => {
    database.exec('BEGIN IMMEDIATE')
    write()
    database.exec('COMMIT')
  }
  let count = 0
  return {
    run: async (times) => {
      for (let done = 0; done < times; done += 1) {
        const tasks = Array.from({ length: atOnce }, () => storedTask((count += 1), 'owed'))
        const write = (): void => {
          for (const task of tasks) put.run(task.id, JSON.stringify(task))
        }
        for (const task of tasks) inTransaction(() => put.run(task.id, JSON.stringify(task)))
        await new Promise(setImmediate)
        inTransaction(write)
        await new Promise(setImmediate)
        const id = `delivery-${count}`
        inTransaction(() => {
          write()
          putDelivery.run(id, JSON.stringify({ id, taskIds: tasks.map((task) => task.id) }))
        })
        inTransaction(() => {
          write()
          putDelivery.run(id, JSON.stringify({ id, state: 'accepted', taskIds: tasks.map((task) => task.id) }))
          // Those of the life before are confirmed, and forgotten.
          dropDelivery.run(`delivery-${count - atOnce}`)
          for (let n = 2 * atOnce; n < 3 * atOnce; n += 1) drop.run(`agent-${count - n}`)
        })
        await new Promise(setImmediate)
      }
      return undefined
    },
    close: () => {
      database.close()
      remove(folder)
    },
  }
}

/** From the end of a run to the start of the delivery of its result, in us. */
export async function endToDelivery(_params: unknown, checkout: string): Promise<Subject> {
  const { createAgentTasks } = await importEntry(checkout, '.')
  const { sqliteStore } = await importEntry(checkout, './store')
  const folder = newFolder()
  let deliver: (() => void) | undefined
  const tasks = createAgentTasks({
    store: sqliteStore(join(folder, 'tasks.db')),
    isAgentBusy: () => false,
    triggerAgentTurn: () => {
      deliver?.()
      return Promise.resolve()
    },
  })
  await tasks.recovered
  const manager = tasks.getAsyncTaskManager()
  return {
    run: async (times) => {
      let us = 0
      for (let done = 0; done < times; done += 1) {
        let end: ((output: typeof OUTPUT) => void) | undefined
        const runner = () => new Promise<typeof OUTPUT>((resolve) => (end = resolve))
        manager.launch({ subagentName: 'agent', goalPrompt: GOAL }, runner)
        await whenStored(manager)
        const delivered = new Promise<void>((resolve) => (deliver = resolve))
        const start = performance.now()
        end?.(OUTPUT)
        await delivered
        us += (performance.now() - start) * 1000
        await manager.onIdle()
      }
      return us / times
    },
    close: async () => {
      await tasks.dispose()
      remove(folder)
    },
  }
}

/** One committed row, in us. */
export function oneCommit(): Subject {
  const folder = newFolder()
  const database = openByHand(join(folder, 'tasks.db'))
  const put = database.prepare('INSERT OR REPLACE INTO tasks VALUES (?, ?)')
  let count = 0
  return {
    run: (times) => {
      const start = performance.now()
      for (let done = 0; done < times; done += 1) {
        const task = storedTask((count += 1) % 10, 'owed')
        put.run(task.id, JSON.stringify(task))
      }
      return ((performance.now() - start) * 1000) / times
    },
    close: () => {
      database.close()
      remove(folder)
    },
  }
}

/** What a store has: tasks of its history, and tasks that a manager keeps. */
interface Stored {
  readonly past: number
  readonly owed: number
}

const pastTasks = ({ past }: Stored): StoredTask[] =>
  Array.from({ length: past }, (_, n) => storedTask(n + 1, 'delivered'))
const owedTasks = ({ past, owed }: Stored): StoredTask[] =>
  Array.from({ length: owed }, (_, n) => storedTask(past + n + 1, 'owed'))

function toPastTask({ id, owner, status, completedAt = 0, record }: StoredTask): PastTask {
  return { id, kind: 'task', owner, name: 'agent', status, completedAt, record }
}

async function fill(file: string, stored: Stored, checkout: string): Promise<void> {
  const { sqliteStore } = await importEntry(checkout, './store')
  // The tasks are as old as the epoch.
  const store = sqliteStore(file, { retention: { maxTasks: Infinity, maxAgeMs: Infinity } })
  store.open()
  await store.write(owedTasks(stored).map((put) => ({ table: 'tasks', put })))
  const past = pastTasks(stored).map(toPastTask)
  while (past.length > 0) await store.history?.add(past.splice(0, 1000))
  store.close()
}

/** A new manager on the file of an earlier process, in ms. */
export async function recovery(stored: Stored, checkout: string): Promise<Subject> {
  const { AsyncTaskManager } = await importEntry(checkout, '.')
  const { sqliteStore } = await importEntry(checkout, './store')
  const folder = newFolder()
  const file = join(folder, 'tasks.db')
  await fill(file, stored, checkout)
  return {
    run: async () => {
      const start = performance.now()
      const manager = new AsyncTaskManager({ maxAsyncTasks: -1, store: sqliteStore(file) })
      await manager.recovered
      const ms = performance.now() - start
      if (manager.getPendingNotifications().length !== stored.owed) throw new Error('not everything was recovered')
      await manager.dispose()
      return ms
    },
    close: () => remove(folder),
  }
}

/** Reading and parsing the rows of such a file, in ms. */
export async function rowsRead(stored: Stored, checkout: string): Promise<Subject> {
  const folder = newFolder()
  const file = join(folder, 'tasks.db')
  await fill(file, stored, checkout)
  return {
    run: () => {
      const start = performance.now()
      const database = openByHand(file)
      const rows = database.prepare('SELECT body FROM tasks').all()
      const tasks = rows.map(({ body }) => JSON.parse(String(body)) as StoredTask)
      const ms = performance.now() - start
      database.close()
      if (tasks.length !== stored.owed) throw new Error('not everything was read')
      return ms
    },
    close: () => remove(folder),
  }
}

/** The size of the files, in bytes a task. */
export async function fileSize(stored: Stored, checkout: string): Promise<Subject> {
  const folder = newFolder()
  const file = join(folder, 'tasks.db')
  await fill(file, stored, checkout)
  return {
    run: () => {
      const bytes = [file, `${file}-history`].reduce((sum, each) => sum + statSync(each).size, 0)
      return bytes / (stored.past + stored.owed)
    },
    close: () => remove(folder),
  }
}

/** The tasks as JSON, in bytes a task. */
export const rowBytes = (stored: Stored): Subject => ({
  run: () => {
    let bytes = 0
    for (const task of [...pastTasks(stored), ...owedTasks(stored)]) bytes += Buffer.byteLength(JSON.stringify(task))
    return bytes / (stored.past + stored.owed)
  },
})
