/** The files that a store and its history find in their folder: those of other programs, of later versions, and what is no file at all. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/system/clock.js'
import { readSqliteHistory, sqliteHistory } from '../../../src/store/history/sqlite-history.js'
import { retentionLimits } from '../../../src/store/history/task-history.js'
import { readStore, sqliteStore } from '../../../src/store/index.js'
import { openDatabase } from '../../../src/store/sqlite/driver.js'
import { createPacedClock } from '../../support/paced-clock.js'
import { past } from './past-task.js'
import { storedTask } from './stored-task.js'

let folder: string
let file: string
let historyFile: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-files-'))
  file = join(folder, 'tasks.db')
  historyFile = `${file}-history`
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const open = (clock = systemClock, limits = {}) => {
  const history = sqliteHistory(historyFile, retentionLimits(limits), clock)
  onTestFinished(() => history.close())
  return history
}

const search = { kind: 'task', limit: 10 } as const

/** Everything in the folder: the names of its files, and what they contain. */
const everything = (): Record<string, string> =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')]))

/** Creates a history with one task, and nothing beside it: a driver may keep the log of a database that is closed. */
async function createHistory(): Promise<void> {
  const elsewhere = mkdtempSync(join(tmpdir(), 'agent-tasks-files-'))
  onTestFinished(() => rmSync(elsewhere, { recursive: true }))
  const history = sqliteHistory(join(elsewhere, 'history'), retentionLimits(), systemClock)
  await history.add([past('a', 1)])
  history.close()
  copyFileSync(join(elsewhere, 'history'), historyFile)
}

function inDatabase(at: string, sql: string): void {
  const database = openDatabase(at)
  database.exec(sql)
  database.close()
}

describe('a history does not change', () => {
  async function expectRefused(code: string): Promise<void> {
    const before = everything()
    await expect(open().add([past('a', 1)])).rejects.toMatchObject({ code })
    await expect(open().find('task', 'a')).rejects.toMatchObject({ code })
    expect(everything()).toEqual(before)
    await expect(readSqliteHistory(historyFile, search)).rejects.toMatchObject({ code })
  }

  it.each(['DELETE', 'WAL'])('K11: the database of another program, with journal_mode=%s', async (mode) => {
    inDatabase(historyFile, `PRAGMA journal_mode = ${mode}; CREATE TABLE mine (a); INSERT INTO mine VALUES (1)`)
    await expectRefused('STORE_INVALID')
  })

  it('K11: the database of another program that died, and left its log', async () => {
    const other = openDatabase(join(folder, 'other.db'))
    other.exec('PRAGMA journal_mode = WAL; CREATE TABLE mine (a); INSERT INTO mine VALUES (1)')
    for (const end of ['', '-wal', '-shm']) copyFileSync(join(folder, `other.db${end}`), `${historyFile}${end}`)
    other.close()
    rmSync(join(folder, 'other.db'))
    const before = [readFileSync(historyFile), readFileSync(`${historyFile}-wal`)]
    await expect(open().add([past('a', 1)])).rejects.toMatchObject({ code: 'STORE_INVALID' })
    expect([readFileSync(historyFile), readFileSync(`${historyFile}-wal`)]).toEqual(before)
  })

  it('K11: a history of a later version', async () => {
    await createHistory()
    inDatabase(historyFile, 'PRAGMA user_version = 9')
    await expectRefused('STORE_NEWER')
  })
})

describe('what is not a file is refused at once', () => {
  const fifo = (path: string): void => void spawnSync('mkfifo', [path])
  const refused = (path: string) =>
    expect.objectContaining({ code: 'STORE_INVALID', message: expect.stringContaining(`${path}: `) as string }) as Error

  it.each(['', '-journal', '-wal', '-shm'])('K11: FILE-history%s is a FIFO or a folder', async (end) => {
    const path = historyFile + end
    if (end !== '') await createHistory()
    for (const make of [fifo, (at: string) => mkdirSync(at)]) {
      make(path)
      await expect(open().add([past('b', 1)])).rejects.toEqual(refused(path))
      await expect(open().query(search)).rejects.toEqual(refused(path))
      await expect(readSqliteHistory(historyFile, search)).rejects.toEqual(refused(path))
      rmSync(path, { recursive: true })
    }
    expect(await open().query(search)).toHaveLength(end === '' ? 0 : 1)
  })

  it.each(['', '-journal', '-wal', '-shm', '-lock'])('K11: FILE%s is a FIFO', (end) => {
    fifo(file + end)
    expect(() => sqliteStore(file).open()).toThrow(refused(file + end))
    if (end !== '-lock') expect(() => readStore(file)).toThrow(refused(file + end))
    rmSync(file + end)
    const store = sqliteStore(file)
    store.open()
    store.close()
    expect(readStore(file).tasks).toEqual([])
  })
})

describe('a lock of another program', () => {
  /** Locks a database until the returned function is called. */
  const locked = (at: string): (() => void) => {
    const other = openDatabase(at)
    other.exec('BEGIN IMMEDIATE')
    return () => other.close()
  }

  it('on the history delays what is written, and blocks nothing', async () => {
    const clock = createPacedClock()
    const history = open(clock)
    await history.add([past('a', 1)])
    const unlock = locked(historyFile)
    const begun = performance.now()
    let isAdded = false
    const adding = history.add([past('b', 2)]).then(() => (isAdded = true))
    expect(await history.query({ ...search })).toHaveLength(1)
    await clock.advance(4000)
    expect(isAdded).toBe(false)
    unlock()
    await clock.advance(100)
    await adding
    expect(await history.query(search)).toHaveLength(2)
    expect(performance.now() - begun).toBeLessThan(4000)
  })

  it('on the history is an error after 5 s, also while the history is being opened', async () => {
    const clock = createPacedClock()
    await createHistory()
    const unlock = locked(historyFile)
    const adding = expect(open(clock).add([past('b', 2)])).rejects.toThrow(/locked/)
    const finding = expect(open(clock).find('task', 'a')).rejects.toMatchObject({ code: 'STORE_FAILED' })
    await clock.advance(6000)
    await Promise.all([adding, finding])
    unlock()
    expect(clock.pending).toBe(0)
    expect(await open().find('task', 'a')).toBeDefined()
  })

  it('on the history does not open it again after it was closed', async () => {
    const clock = createPacedClock()
    const history = open(clock)
    await history.add([past('a', 1)])
    const unlock = locked(historyFile)
    const adding = expect(history.add([past('b', 2)])).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    await clock.advance(100)
    history.close()
    unlock()
    await clock.advance(100)
    await adding
    expect(clock.pending).toBe(0)
  })

  it('on the store delays what is written, and blocks nothing', async () => {
    const clock = createPacedClock()
    const store = sqliteStore(file, { clock })
    store.open()
    onTestFinished(() => store.close())
    const unlock = locked(file)
    const begun = performance.now()
    let isWritten = false
    const writing = store.write([{ table: 'tasks', put: storedTask('a') }]).then(() => (isWritten = true))
    await clock.advance(4000)
    expect(isWritten).toBe(false)
    unlock()
    await clock.advance(100)
    await writing
    expect(readStore(file).tasks).toHaveLength(1)
    expect(performance.now() - begun).toBeLessThan(4000)
  })
})

it.each([
  { state: 'was closed', ends: [''] },
  { state: 'was open', ends: ['', '-wal'] },
  { state: 'was open, with its index', ends: ['', '-wal', '-shm'] },
])('K11: a backup of a store that $state can be read in a folder that nobody may write', async ({ ends }) => {
  const backup = join(folder, 'back up #1?')
  mkdirSync(backup)
  const store = sqliteStore(file)
  store.open()
  await store.write([{ table: 'tasks', put: storedTask('a') }])
  await store.history?.add([past('b', 1)])
  if (ends.length === 1) store.close()
  for (const name of ['tasks.db', 'tasks.db-history']) {
    for (const end of ends) copyFileSync(join(folder, name + end), join(backup, name + end))
  }
  if (ends.length > 1) store.close()
  // Nothing is denied to root. The child loads all that it needs before it becomes somebody else, who may not read the sources.
  const nobody = 65_534
  const isRoot = process.getuid?.() === 0
  if (isRoot) for (const name of ['', ...readdirSync(backup)]) chownSync(join(backup, name), nobody, nobody)
  for (const name of readdirSync(backup)) chmodSync(join(backup, name), 0o400)
  chmodSync(backup, 0o500)
  chmodSync(folder, 0o755)
  onTestFinished(() => chmodSync(backup, 0o700))
  const before = readdirSync(tmpdir()).filter((name) => name.startsWith('agent-tasks-read-'))
  const script = `
    import { readSqliteHistory, readStore, sqliteStore } from ${JSON.stringify(new URL('../../../src/store/index.ts', import.meta.url).href)}
    const other = sqliteStore(${JSON.stringify(join(folder, 'other.db'))})
    other.open()
    other.close()
    if (${isRoot}) {
      process.setgid(${nobody})
      process.setuid(${nobody})
    }
    const file = ${JSON.stringify(join(backup, 'tasks.db'))}
    const ids = (tasks) => tasks.map(({ id }) => id).join()
    console.log(ids(readStore(file).tasks), ids(await readSqliteHistory(file + '-history', { kind: 'task', limit: 9 })))
  `
  const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href
  // Node 22 warns that its SQLite is experimental.
  const flags = ['--no-warnings', '--import', tsx, '--input-type=module']
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', script], { encoding: 'utf8' })
  expect([stdout, stderr]).toEqual(['a b\n', ''])
  expect(readdirSync(backup).sort()).toEqual(
    ['tasks.db', 'tasks.db-history'].flatMap((name) => ends.map((end) => name + end)).sort(),
  )
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith('agent-tasks-read-'))).toEqual(before)
  expect(existsSync(file)).toBe(true)
})
