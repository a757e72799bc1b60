import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/system/clock.js'
import { postgresStore } from '../../../src/store/postgres/index.js'
import { openStore, sqliteStore } from '../../../src/store/index.js'
import { sessionFolder } from '../../../src/store/sessions/session-folder.js'
import { sessionStore } from '../../../src/store/sessions/session-store.js'
import { localPostgres, type LocalPostgres } from '../../support/pglite.js'
import { memoryHistory } from '../../../src/store/history/memory-history.js'
import { wordsOf } from '../../../src/store/history/search-words.js'
import { readSqliteHistory, sqliteHistory } from '../../../src/store/history/sqlite-history.js'
import {
  retentionLimits,
  type PastTask,
  type RetentionLimits,
  type TaskHistory,
} from '../../../src/store/history/task-history.js'
import { openDatabase } from '../../../src/store/sqlite/driver.js'
import { NOW, past } from './past-task.js'

const CLOCK = { ...systemClock, now: () => NOW }

function historyFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-history-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'tasks.db-history')
}

function inFile(limits: RetentionLimits = {}, file = historyFile()): TaskHistory {
  const history = sqliteHistory(file, retentionLimits(limits), CLOCK)
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
  const store = await openStore(postgresStore({ connection: postgres.connect, schema, retention, clock: CLOCK }))
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

  it('finds other spellings of a letter, and reads vowel signs as spaces', async () => {
    const history = await create()
    const texts = { a: 'ha\u0308ufig', b: 'ΟΔΟΣ ΟΔΟΣΑ', c: 'ｆｉｌｅ ﬁnd', d: 'ab\u19b0cde', e: 'STRASSE Kelvin\u212a' }
    await history.add(Object.entries(texts).map(([id, goalPrompt], at) => past(id, at, { record: { goalPrompt } })))
    for (const [text, expected] of [
      ['häuf', ['a']],
      ['ha\u0308uf', ['a']],
      ['οδος', ['b']],
      ['οδοσα', ['b']],
      ['ΟΔΟΣ', ['b']],
      ['FILE fin', ['c']],
      ['ab\u19b0cd', []],
      ['ab\u19b0cde', ['d']],
      ['cde', ['d']],
      ['\u19b0', ['a', 'b', 'c', 'd', 'e']],
      ['kelvink', ['e']],
    ] as const) {
      expect([text, await idsOf(history, { text })]).toEqual([text, expected])
    }
  })

  it('finds a task whatever its id and owner contain', async () => {
    const history = await create()
    const ids = [
      'back\\slash',
      'quo"te',
      "apo'strophe",
      'two\nlines',
      'a\0b',
      '\\n',
      '\\"',
      '%',
      '_',
      'ä',
      '\u2028',
      '',
    ]
    await history.add(ids.map((id, at) => past(id, at, { owner: `owner ${id}` })))
    await history.add(ids.map((id, at) => past(id, at, { kind: 'command task', record: { id, name: 'commands' } })))
    for (const [at, id] of ids.entries()) {
      expect(await history.find('task', id)).toEqual(past(id, at, { owner: `owner ${id}` }))
      expect(await history.find('command task', id)).toMatchObject({ id, record: { name: 'commands' } })
      expect(await idsOf(history, { owner: `owner ${id}` })).toEqual([id])
      const before = { completedAt: NOW - at, id }
      expect(await idsOf(history, { before })).toEqual(ids.slice(at + 1))
    }
    for (const id of ids) await history.add([past(id, 50)])
    expect(await idsOf(history, { limit: 1000 })).toHaveLength(ids.length)
  })

  it('keeps adding after a write that failed', async () => {
    const history = await create()
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    await history.add([past('a', 3)])
    await expect(history.add([past('b', 2), past('c', 1, { record: circular })])).rejects.toThrow()
    expect(await idsOf(history)).toEqual(['a'])
    await history.add([past('d', 0)])
    expect(await idsOf(history)).toEqual(['d', 'a'])
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

describe.each(Object.entries(kinds))('a sweep of a history in %s', (_where, create) => {
  const sweepWith = async (history: TaskHistory, tasks: readonly PastTask[]): Promise<string[]> => {
    await history.add(tasks)
    return (await idsOf(history, { limit: 100_000 })).reverse()
  }
  const numbered = (count: number, fields: Partial<PastTask> = {}): PastTask[] =>
    Array.from({ length: count }, (_, at) => past(`t${String(at).padStart(5, '0')}`, count - at, fields))

  it('leaves exactly the latest tasks that fit into maxBytes, in bytes and not in characters', async () => {
    const tasks = numbered(150, { record: { goalPrompt: '語'.repeat(50) } })
    const bytes = Buffer.byteLength(JSON.stringify(tasks[0]))
    expect(bytes).toBeGreaterThan(JSON.stringify(tasks[0]).length)
    const latest = (count: number): string[] => tasks.slice(-count).map(({ id }) => id)
    expect(await sweepWith(await create({ maxBytes: 20 * bytes }), tasks)).toEqual(latest(20))
    expect(await sweepWith(await create({ maxBytes: 21 * bytes - 1 }), tasks)).toEqual(latest(20))
    expect(await sweepWith(await create({ maxBytes: 0 }), tasks)).toEqual([])
  })

  it('leaves exactly maxTasks, however many there were', async () => {
    const tasks = numbered(2500)
    expect(await sweepWith(await create({ maxTasks: 10 }), tasks)).toEqual(tasks.slice(-10).map(({ id }) => id))
  })
})

it('a history in a file keeps to a limit that was lowered as soon as it is opened', async () => {
  const file = historyFile()
  const first = sqliteHistory(file, retentionLimits(), CLOCK)
  await first.add(Array.from({ length: 2500 }, (_, at) => past(`t${at}`, 2500 - at)))
  first.close()
  expect(await idsOf(inFile({ maxTasks: 10 }, file), { limit: 10_000 })).toHaveLength(10)
})

it('on a server, it is swept also when each process adds few tasks', async () => {
  const schema = `history_${(schemas += 1)}`
  const options = { connection: postgres.connect, schema, clock: CLOCK }
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

  it('splits texts into the same words as a search, for every letter and digit', async () => {
    const file = historyFile()
    const history = sqliteHistory(file, retentionLimits(), CLOCK)
    await history.add([past('a', 1, { record: {} })])
    history.close()
    const words = new Set<string>()
    for (let code = 0; code < 0x20000; code += 1) {
      const letter = String.fromCodePoint(code)
      const isCommon = /[\p{Script=Han}\p{Script=Hangul}]/u.test(letter)
      if (!isCommon && /[\p{L}\p{N}]/u.test(letter)) for (const word of wordsOf(`qx${letter}xq`)) words.add(word)
    }
    expect(words.size).toBeGreaterThan(20_000)
    const database = openDatabase(file)
    database.prepare('INSERT INTO words (rowid, list) VALUES (2, ?)').run([...words].join(' '))
    database.exec("CREATE VIRTUAL TABLE indexed USING fts5vocab (words, 'row')")
    const indexed = new Set(
      database
        .prepare('SELECT term FROM indexed')
        .all()
        .map(({ term }) => term),
    )
    database.close()
    expect([...words].filter((word) => !indexed.has(word))).toEqual([])
  })

  it('is there again when it is opened again, and readable for its owner alone', async () => {
    const file = historyFile()
    const history = sqliteHistory(file, retentionLimits(), CLOCK)
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
    const history = sqliteHistory(file, retentionLimits(), CLOCK)
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
