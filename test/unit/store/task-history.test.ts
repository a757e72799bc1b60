import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/clock.js'
import { postgresStore } from '../../../src/postgres/index.js'
import { openStore, sqliteStore } from '../../../src/store/index.js'
import { sessionFolder } from '../../../src/store/sessions/session-folder.js'
import { sessionStore } from '../../../src/store/sessions/session-store.js'
import { localPostgres, type LocalPostgres } from '../../support/pglite.js'
import { memoryHistory } from '../../../src/store/history/memory-history.js'
import { readSqliteHistory, sqliteHistory } from '../../../src/store/history/sqlite-history.js'
import {
  retentionLimits,
  type PastTask,
  type RetentionLimits,
  type TaskHistory,
} from '../../../src/store/history/task-history.js'
import { openDatabase } from '../../../src/store/sqlite/driver.js'

const NOW = 1_800_000_000_000

function historyFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-history-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'tasks.db-history')
}

function inFile(limits: RetentionLimits = {}, file = historyFile()): TaskHistory {
  const history = sqliteHistory(file, retentionLimits(limits), () => NOW)
  onTestFinished(() => history.close())
  return history
}

let postgres: LocalPostgres
let schemas = 0
beforeAll(async () => {
  postgres = await localPostgres()
})
afterAll(() => postgres.close())

async function inPostgres(retention: RetentionLimits = {}): Promise<TaskHistory> {
  const schema = `history_${(schemas += 1)}`
  const clock = { ...systemClock, now: () => NOW }
  const store = await openStore(postgresStore({ connection: postgres.connect, schema, retention, clock }))
  onTestFinished(async () => store.close())
  const { history } = store
  if (history === undefined) throw new Error('there is no history')
  return history
}

const kinds = {
  PostgreSQL: inPostgres,
  memory: (limits: RetentionLimits = {}) => memoryHistory(retentionLimits(limits), () => NOW),
  SQLite: inFile,
}

export const past = (id: string, ago: number, fields: Partial<PastTask> = {}): PastTask => ({
  id,
  kind: 'task',
  owner: 'main',
  name: 'research',
  status: 'completed',
  completedAt: NOW - ago,
  record: { id, goalPrompt: `goal of ${id}`, output: { final_message: 'done' } },
  ...fields,
})

const idsOf = async (
  history: TaskHistory,
  query: Partial<Parameters<TaskHistory['query']>[0]> = {},
): Promise<string[]> => (await history.query({ kind: 'task', limit: 100, ...query })).map(({ id }) => id)

describe.each(Object.entries(kinds))('a history in %s', (_where, create) => {
  it('returns the latest first, a page at a time, without gaps among tasks that ended at once', async () => {
    const history = await create()
    await history.add([past('c', 5), past('a', 20), past('b', 5), past('d', 1)])
    expect(await idsOf(history)).toEqual(['d', 'c', 'b', 'a'])
    const seen: string[] = []
    let before: PastTask | undefined
    for (;;) {
      const [task] = await history.query({ kind: 'task', limit: 1, ...(before && { before }) })
      if (task === undefined) break
      seen.push(task.id)
      before = task
    }
    expect(seen).toEqual(['d', 'c', 'b', 'a'])
  })

  it('finds tasks by owner, name, status and kind', async () => {
    const history = await create()
    await history.add([
      past('a', 1),
      past('b', 2, { owner: 'other\0owner' }),
      past('c', 3, { name: 'writer' }),
      past('d', 4, { status: 'failed' }),
      past('a', 5, { kind: 'command task', record: { name: 'commands' } }),
    ])
    expect(await idsOf(history, { owner: 'other\0owner' })).toEqual(['b'])
    expect(await idsOf(history, { name: 'writer' })).toEqual(['c'])
    expect(await idsOf(history, { status: 'failed', owner: 'main' })).toEqual(['d'])
    expect(await idsOf(history, { kind: 'command task' })).toEqual(['a'])
    expect(await history.find('command task', 'a')).toMatchObject({ record: { name: 'commands' } })
    expect(await history.find('task', 'a')).toEqual(past('a', 1))
    expect(await history.find('task', 'none')).toBeUndefined()
  })

  it('finds tasks by the beginnings of their words, whatever the search contains', async () => {
    const history = await create()
    const texts = {
      a: 'Fix the login page: ERROR_42 in häufig/used.ts',
      b: 'the Login form',
      c: 'x" OR words MATCH "y',
      d: 'a\0b \ud83d\ude00 \ud800',
    }
    await history.add(Object.entries(texts).map(([id, goalPrompt], at) => past(id, at, { record: { goalPrompt } })))
    for (const [text, expected] of [
      ['login', ['a', 'b']],
      ['LOG pag', ['a']],
      ['in', ['a']],
      ['th', []],
      ['ogin', []],
      ['error 42', ['a']],
      ['häuf', ['a']],
      ['hauf', []],
      ['"or" words:', ['c']],
      ['x" OR "y', ['c']],
      ['NOT', []],
      ['* " \' ( ) : ^ - \0', ['a', 'b', 'c', 'd']],
      ['', ['a', 'b', 'c', 'd']],
    ] as const) {
      expect([text, await idsOf(history, { text })]).toEqual([text, expected])
    }
  })

  it('replaces a task of the same id, also what it is found by', async () => {
    const history = await create()
    await history.add([past('a', 5, { record: { goalPrompt: 'first' } })])
    await history.add([past('a', 1, { record: { goalPrompt: 'second' } })])
    expect(await idsOf(history)).toEqual(['a'])
    expect(await idsOf(history, { text: 'first' })).toEqual([])
    expect(await idsOf(history, { text: 'second' })).toEqual(['a'])
  })

  it('keeps the latest tasks, within each of its limits', async () => {
    const tasks = Array.from({ length: 250 }, (_, at) => past(`t${String(at).padStart(3, '0')}`, 250 - at))
    for (const limits of [{ maxTasks: 20 }, { maxAgeMs: 21 }, { maxBytes: 20 * JSON.stringify(tasks[0]).length }]) {
      const history = await create(limits)
      for (const task of tasks) await history.add([task])
      const left = await idsOf(history, { limit: 1000 })
      expect(left[0]).toBe('t249')
      expect(left.length).toBeGreaterThanOrEqual(20)
      expect(left.length).toBeLessThanOrEqual(20 + 100)
      expect(await idsOf(history, { text: 't000' })).toEqual([])
    }
  })
})

it('on a server, it is swept also when each process adds few tasks', async () => {
  const schema = `history_${(schemas += 1)}`
  const options = { connection: postgres.connect, schema, clock: { ...systemClock, now: () => NOW } }
  for (let life = 0; life < 4; life += 1) {
    const store = await openStore(postgresStore({ ...options, retention: { maxTasks: 20 } }))
    for (let at = 0; at < 30; at += 1) await store.history?.add([past(`t${life}-${at}`, 1000 - 30 * life - at)])
    expect((await idsOf(store.history as TaskHistory, { limit: 1000 })).length).toBeLessThanOrEqual(50)
    await store.close()
  }
})

describe('a history in a file', () => {
  it('that its creator did not get to write is empty for a reader', async () => {
    const file = historyFile()
    writeFileSync(file, '')
    expect(await readSqliteHistory(file, { kind: 'task', limit: 10 })).toEqual([])
    expect(statSync(file).size).toBe(0)
  })

  it('is there again when it is opened again, and readable for its owner alone', async () => {
    const file = historyFile()
    const history = sqliteHistory(file, retentionLimits(), () => NOW)
    await history.add([past('a', 1)])
    history.close()
    expect(await idsOf(history)).toEqual(['a'])
    history.close()
    expect(await idsOf(inFile({}, file))).toEqual(['a'])
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('creates no file to find nothing', async () => {
    const file = historyFile()
    expect(await idsOf(inFile({}, file))).toEqual([])
    expect(() => statSync(file)).toThrow(/ENOENT/)
  })

  it('is used by two at once', async () => {
    const file = historyFile()
    const both = [inFile({}, file), inFile({}, file)] as const
    for (let count = 0; count < 20; count += 1) await both[count % 2]?.add([past(`t${count}`, count)])
    expect(await idsOf(both[0])).toHaveLength(20)
    expect(await idsOf(both[1])).toHaveLength(20)
  })

  it('refuses what is none, and leaves it as it is', async () => {
    const file = historyFile()
    writeFileSync(file, 'some text of mine, which is no database at all')
    const before = readFileSync(file)
    await expect(inFile({}, file).add([past('a', 1)])).rejects.toMatchObject({ code: 'STORE_INVALID' })
    expect(readFileSync(file)).toEqual(before)
    const other = historyFile()
    const database = openDatabase(other)
    database.exec('CREATE TABLE mine (a)')
    database.close()
    await expect(inFile({}, other).query({ kind: 'task', limit: 1 })).rejects.toThrow(
      /this file is not a history of agent-tasks/,
    )
  })

  it('says which row is damaged, and which version is newer', async () => {
    const file = historyFile()
    const history = sqliteHistory(file, retentionLimits(), () => NOW)
    await history.add([past('a', 1)])
    history.close()
    const change = (sql: string): void => {
      const database = openDatabase(file)
      database.exec(sql)
      database.close()
    }
    change("UPDATE tasks SET body = replace(body, 'goal', 'loot')")
    await expect(history.find('task', 'a')).rejects.toThrow(/the row "a" of the history is damaged/)
    history.close()
    change('PRAGMA user_version = 9')
    await expect(history.find('task', 'a')).rejects.toMatchObject({ code: 'STORE_NEWER' })
  })
})

it('a store that is closed has closed its history', async () => {
  const folder = dirname(historyFile())
  for (const store of [
    sqliteStore(join(folder, 'tasks.db')),
    sessionStore(sessionFolder(join(folder, 'sessions'), 'key'), () => true),
  ]) {
    store.open()
    await store.history?.add([past('a', 1)])
    expect(await store.history?.find('task', 'a')).toBeDefined()
    store.close()
    rmSync(folder, { recursive: true })
    mkdirSync(folder)
    expect(await store.history?.find('task', 'a')).toBeUndefined()
  }
})

it('a store may have no history', () => {
  expect(sqliteStore(historyFile(), { retention: { maxTasks: 0 } }).history).toBeUndefined()
  expect(() => sqliteStore(historyFile(), { retention: { maxTasks: 'all' as unknown as number } })).toThrow(
    'options.retention.maxTasks: got "all", expected a number >= 0',
  )
  expect(() => sqliteStore(historyFile(), { retentions: {} } as object)).toThrow(/options\.retentions/)
})

it('the limits are checked', () => {
  expect(() => retentionLimits({ maxTasks: -1 })).toThrow('options.retention.maxTasks: got -1, expected a number >= 0')
  expect(() => retentionLimits({ maxDays: 1 } as RetentionLimits)).toThrow(/options\.retention\.maxDays/)
})
