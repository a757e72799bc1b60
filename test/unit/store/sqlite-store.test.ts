import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readStore, sqliteStore, StoreError } from '../../../src/store/index.js'
import { openDatabase } from '../../../src/store/sqlite/driver.js'
import { identityOf } from '../../../src/system/process-identity.js'
import { lockStore } from '../../../src/store/sqlite/owner-lock.js'
import { migrate, MIGRATIONS } from '../../../src/store/sqlite/migrations.js'
import { LAYOUT_VERSION } from '../../../src/store/sqlite/schema.js'
import type { StoredTask } from '../../../src/store/store.js'
import { StoreInUseError } from '../../../src/store/store-errors.js'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-store-'))
  file = join(folder, 'tasks.db')
})

afterEach(() => rmSync(folder, { recursive: true }))

const task = (id: string, seq = 1, record: StoredTask['record'] = {}): StoredTask => ({
  id,
  owner: 'main',
  status: 'running',
  delivery: 'none',
  attempt: 1,
  seq,
  launchedAt: 1,
  record,
})

const put = (row: StoredTask) => ({ table: 'tasks', put: row }) as const

async function createStore(...rows: readonly StoredTask[]): Promise<void> {
  const store = sqliteStore(file)
  store.open()
  await store.write(rows.map(put))
  store.close()
}

function refusal(run: () => unknown): StoreError {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(StoreError)
    return error as StoreError
  }
  throw new Error('it was not refused')
}

async function writeRefusal(write: () => Promise<void>): Promise<StoreError> {
  const error: unknown = await write().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(StoreError)
  return error as StoreError
}

const codeOf = (run: () => unknown): string => refusal(run).code

describe('the files of a store', () => {
  it('are readable for their owner alone', async () => {
    const store = sqliteStore(file)
    store.open()
    await store.write([put(task('a'))])
    const modes = ['', '-wal', '-shm', '-lock', '-owner'].map((end) => statSync(`${file}${end}`).mode & 0o777)
    store.close()
    expect(modes).toEqual([0o600, 0o600, 0o600, 0o600, 0o600])
  })

  it('are in a folder that git ignores, if the store creates it', async () => {
    file = join(folder, 'deep/.agent/tasks.db')
    await createStore()
    expect(statSync(join(folder, 'deep/.agent')).mode & 0o777).toBe(0o700)
    expect(readFileSync(join(folder, 'deep/.agent/.gitignore'), 'utf8')).toBe('*\n')
  })

  it('leave a folder that exists as it is', async () => {
    await createStore()
    expect(existsSync(join(folder, '.gitignore'))).toBe(false)
  })

  it('can be queried: ids, owners, states and times are columns', async () => {
    await createStore(task('a'), task('b', 2))
    const database = openDatabase(file, { readOnly: true })
    const rows = database
      .prepare('SELECT id, owner, status, delivery, attempt, launched_at FROM tasks ORDER BY seq')
      .all()
    database.close()
    expect(rows.map((row) => ({ ...row }))).toEqual(
      ['a', 'b'].map((id) => ({ id, owner: 'main', status: 'running', delivery: 'none', attempt: 1, launched_at: 1 })),
    )
  })

  it('give back the space of what was removed', async () => {
    const store = sqliteStore(file)
    store.open()
    const rows = Array.from({ length: 2000 }, (_, at) => task(`task-${at}`, at, { text: 'x'.repeat(500) }))
    await store.write(rows.map(put))
    await store.write(rows.map(({ id }) => ({ table: 'tasks', remove: id })))
    store.close()
    expect(statSync(file).size).toBeLessThan(100_000)
  })
})

it('without a path is refused with the reason', () => {
  for (const path of [undefined, '', 5]) {
    expect(() => sqliteStore(path as never)).toThrow(/^path: got .*, expected the path of a file\.$/)
  }
})

describe('the owner of a store', () => {
  it('is named to the second one', () => {
    const store = sqliteStore(file)
    store.open()
    const error = refusal(() => sqliteStore(file).open())
    expect(error).toBeInstanceOf(StoreInUseError)
    expect(error).toMatchObject({ code: 'STORE_IN_USE', pid: process.pid })
    expect(error.message).toBe(
      `${file} is in use by this process (${process.pid}): it has opened it already. Close that store first, or use another file.`,
    )
    store.close()
  })

  it('is found under another path of the same file', () => {
    symlinkSync(folder, `${folder}-link`)
    const store = sqliteStore(file)
    store.open()
    expect(codeOf(() => sqliteStore(join(`${folder}-link`, 'tasks.db')).open())).toBe('STORE_IN_USE')
    store.close()
    rmSync(`${folder}-link`)
  })

  it('K9: has its owner as long as that runs, also when the lock was removed', () => {
    const store = sqliteStore(file)
    store.open()
    rmSync(`${file}-lock`)
    const code = `
      import { sqliteStore } from './src/store/index.ts'
      try { sqliteStore(process.argv[1]).open() } catch ({ code, pid }) { console.log(code, pid) }`
    const { stdout } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', code, file], {
      encoding: 'utf8',
    })
    expect(stdout).toBe(`STORE_IN_USE ${process.pid}\n`)
    store.close()
  })

  it('K9: has no owner when the process that is named was another one', async () => {
    await createStore(task('a'))
    const { pid, ...identity } = identityOf(process.pid) ?? { pid: 0 }
    writeFileSync(`${file}-owner`, JSON.stringify({ pid, ...identity, start: '1', file: realpathSync(file) }))
    const store = sqliteStore(file)
    expect(store.open().tasks).toHaveLength(1)
    store.close()
  })

  it('K9: does not own a copy', () => {
    const store = sqliteStore(file)
    store.open()
    const copy = join(folder, 'copy.db')
    for (const suffix of ['', '-wal', '-owner']) copyFileSync(`${file}${suffix}`, `${copy}${suffix}`)
    const second = sqliteStore(copy)
    expect(second.open().tasks).toEqual([])
    second.close()
    store.close()
  })

  it('K9: is refused under a second name, which would have a lock of its own', async () => {
    await createStore(task('a'))
    linkSync(file, join(folder, 'second.db'))
    const error = refusal(() => sqliteStore(join(folder, 'second.db')).open())
    expect(error.code).toBe('STORE_INVALID')
    expect(error.message).toContain('second.db: the file has 2 hard links, so two processes could open it')
    rmSync(join(folder, 'second.db'))
    const store = sqliteStore(file)
    expect(store.open().tasks).toHaveLength(1)
    store.close()
  })

  it('opens with the name that a process left that was killed while it created the file', async () => {
    await createStore(task('a'))
    linkSync(file, `${file}-new`)
    const store = sqliteStore(file)
    expect(store.open().tasks).toHaveLength(1)
    expect(existsSync(`${file}-new`)).toBe(false)
    store.close()
  })

  it('K9: does not keep readers out, in this process or in another', async () => {
    const store = sqliteStore(file)
    store.open()
    await store.write([put(task('a'))])
    expect(readStore(file).tasks).toEqual([task('a')])
    await store.write([put(task('b', 2))])
    expect(readStore(file).tasks).toHaveLength(2)
    expect(codeOf(() => sqliteStore(file).open())).toBe('STORE_IN_USE')
    store.close()
  })
})

describe('a store refuses, and leaves as it is,', () => {
  function expectUntouched(code: string, words: RegExp): void {
    const before = readFileSync(file)
    const error = refusal(() => sqliteStore(file).open())
    expect(error.code).toBe(code)
    expect(error.message).toContain(file)
    expect(error.message).toMatch(words)
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(codeOf(() => readStore(file))).toBe(code)
    expect(existsSync(`${file}-owner`)).toBe(false)
  }

  it('K11: a file that is no database', () => {
    writeFileSync(file, 'a letter to somebody, which is longer than the header of a database would be: '.repeat(3))
    expectUntouched('STORE_INVALID', /not an SQLite database/)
  })

  it('a short file', () => {
    writeFileSync(file, 'x')
    expectUntouched('STORE_INVALID', /not an SQLite database/)
  })

  it('K11: an empty file, and the log beside it', () => {
    writeFileSync(file, '')
    writeFileSync(`${file}-wal`, 'log')
    expectUntouched('STORE_INVALID', /empty/)
    expect(readFileSync(`${file}-wal`, 'utf8')).toBe('log')
  })

  it('a database of another program', () => {
    const database = openDatabase(file)
    database.exec('CREATE TABLE songs (name)')
    database.close()
    expectUntouched('STORE_INVALID', /not one that agent-tasks created/)
  })

  it('K11: a store of a later version', async () => {
    await createStore()
    const database = openDatabase(file)
    database.exec('PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)')
    database.close()
    expectUntouched('STORE_NEWER', /layout 99/)
  })

  it('a symbolic link', async () => {
    await createStore()
    renameSync(file, `${file}-real`)
    symlinkSync(`${file}-real`, file)
    expectUntouched('STORE_INVALID', /symbolic link/)
  })

  it('a folder', () => {
    mkdirSync(file)
    expect(codeOf(() => sqliteStore(file).open())).toBe('STORE_INVALID')
  })

  it('K11: a store in which one byte of a text has changed', async () => {
    await createStore(task('a', 1, { text: 'the original text' }))
    const bytes = readFileSync(file)
    bytes.write('0', bytes.indexOf('original'))
    writeFileSync(file, bytes)
    expectUntouched('STORE_DAMAGED', /row "a" of table tasks/)
  })

  it.each(['null', '5', '"a"', '[]', '{}', '{"id":5}', 'no JSON'])(
    'K11: a store with the row %s, whose checksum is right',
    async (body) => {
      await createStore(task('a', 1, {}))
      const database = openDatabase(file)
      database.prepare('UPDATE tasks SET body = ?, sum = ?').run(body, crc32(body))
      database.close()
      expectUntouched('STORE_DAMAGED', /row "a" of table tasks/)
    },
  )

  it('K11: a store with a torn page', async () => {
    await createStore(...Array.from({ length: 300 }, (_, at) => task(`task-${at}`, at, { text: 'x'.repeat(100) })))
    const bytes = readFileSync(file)
    bytes.fill(0, 3 * 4096, 3 * 4096 + 2048)
    writeFileSync(file, bytes)
    expectUntouched('STORE_DAMAGED', /damaged/)
  })
})

it('K11: a store that may not be written is refused when it is opened, not when the first task ends', async () => {
  await createStore(task('a'))
  // Nothing is denied to root. The child loads all that it needs before it becomes somebody else, who may not read the sources.
  const nobody = 65_534
  const isRoot = process.getuid?.() === 0
  if (isRoot) for (const name of ['', ...readdirSync(folder)]) chownSync(join(folder, name), nobody, nobody)
  chmodSync(file, 0o400)
  const script = `
    import { sqliteStore } from ${JSON.stringify(new URL('../../../src/store/index.ts', import.meta.url).href)}
    const other = sqliteStore(${JSON.stringify(join(folder, 'other.db'))})
    other.open()
    other.close()
    if (${isRoot}) {
      process.setgid(${nobody})
      process.setuid(${nobody})
    }
    const store = sqliteStore(${JSON.stringify(file)})
    try {
      console.log('opened with', store.open().tasks.length)
    } catch ({ code, message }) {
      console.log(code, message)
    }
    store.close()
  `
  const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href
  const { stdout } = spawnSync(process.execPath, ['--import', tsx, '--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  expect(stdout).toContain(`STORE_READ_ONLY ${file}: it cannot be written: the file or its folder is read-only`)
  expect(existsSync(`${file}-owner`)).toBe(false)
})

describe('a write fails, and the rows stay as they were,', () => {
  it('K10: when the file was removed', async () => {
    const store = sqliteStore(file)
    store.open()
    await store.write([put(task('a'))])
    renameSync(file, `${file}-aside`)
    const error = await writeRefusal(() => store.write([put(task('b', 2))]))
    expect(error.code).toBe('STORE_LOST')
    expect(error.message).toMatch(/was removed/)
    renameSync(`${file}-aside`, file)
    await store.write([put(task('c', 3))])
    store.close()
    expect(readStore(file).tasks.map(({ id }) => id)).toEqual(['a', 'c'])
  })

  it('when another file is in its place', async () => {
    const store = sqliteStore(file)
    store.open()
    renameSync(file, `${file}-aside`)
    copyFileSync(`${file}-aside`, file)
    const error = await writeRefusal(() => store.write([put(task('b'))]))
    expect(error.message).toMatch(/replaced by another file/)
    store.close()
  })

  it.each([
    ['removed', (log: string) => rmSync(log)],
    ['cut', (log: string) => truncateSync(log, 0)],
    ['cut', (log: string) => truncateSync(log, 5000)],
    [
      'replaced by another file',
      (log: string) => {
        renameSync(log, `${log}-aside`)
        copyFileSync(`${log}-aside`, log)
      },
    ],
  ])('K10: when the log was %s', async (what, damage) => {
    const store = sqliteStore(file)
    store.open()
    await store.write([put(task('a'))])
    damage(`${file}-wal`)
    for (const id of ['b', 'c']) {
      const error = await writeRefusal(() => store.write([put(task(id, 2))]))
      expect(error.code).toBe('STORE_LOST')
      expect(error.message).toContain(`tasks.db-wal: the log was ${what} while the store was open.`)
    }
    store.close()
  })

  it('K10: not when another connection has moved the log to the file and cut it', async () => {
    const store = sqliteStore(file)
    store.open()
    for (let at = 1; at <= 10; at += 1) await store.write([put(task(`${at}`, at))])
    const before = statSync(`${file}-wal`).size
    const other = openDatabase(file)
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    other.close()
    expect(statSync(`${file}-wal`).size).toBeLessThan(before)
    await store.write([put(task('later', 11))])
    expect(readStore(file).tasks).toHaveLength(11)
    store.close()
  })

  it('K10: when the disk is full, until there is room again', () => {
    const script = `
      import { sqliteStore, readStore } from ${JSON.stringify(new URL('../../../src/store/index.ts', import.meta.url).href)}
      const store = sqliteStore(${JSON.stringify(file)})
      store.open()
      const row = (id, text) => ({ table: 'tasks', put: { ...${JSON.stringify(task('', 1))}, id, record: { text } } })
      await store.write([row('small', 'x')])
      let code = 'none'
      try { await store.write([row('large', 'x'.repeat(2e6))]) } catch (error) { code = error.name + ' ' + error.code }
      await store.write([row('later', 'x')])
      console.log(code, readStore(${JSON.stringify(file)}).tasks.map(({ id }) => id).join())
      store.close()
    `
    const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href
    // A limit on the size of files stands in for a full disk; SIGXFSZ would end the process.
    const command = `trap '' XFSZ; ulimit -f 1000; exec "$0" --import "$1" --input-type=module -e "$2"`
    const { stdout, stderr } = spawnSync('bash', ['-c', command, process.execPath, tsx, script], { encoding: 'utf8' })
    expect(`${stdout}${stderr}`).toMatch(/^StoreError STORE_(FULL|FAILED) later,small$/m)
  })
})

describe('the migration of an older layout', () => {
  it('puts a copy aside and changes the file in one transaction', async () => {
    await createStore(task('a'))
    const database = openDatabase(file)
    expect(
      migrate(database, file, LAYOUT_VERSION, [...MIGRATIONS, (of) => of.exec('ALTER TABLE tasks ADD COLUMN queue')]),
    ).toBe(true)
    expect(database.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: LAYOUT_VERSION + 1 })
    database.close()
    expect(codeOf(() => sqliteStore(file).open())).toBe('STORE_NEWER')
    expect(readStore(`${file}-layout-${LAYOUT_VERSION}`).tasks).toEqual([task('a')])
    expect(statSync(`${file}-layout-${LAYOUT_VERSION}`).mode & 0o777).toBe(0o600)
  })

  it('leaves the file as it was when a step fails', async () => {
    await createStore(task('a'))
    const database = openDatabase(file)
    const steps = [
      ...MIGRATIONS,
      (of: typeof database) => of.exec('DELETE FROM tasks'),
      () => {
        throw new Error('a step that fails')
      },
    ]
    expect(() => migrate(database, file, LAYOUT_VERSION, steps)).toThrow('a step that fails')
    // No transaction is left.
    database.exec('BEGIN; COMMIT')
    database.close()
    expect(readStore(file).tasks).toEqual([task('a')])
  })

  it('K11: leaves a copy for its owner alone, in place of what an earlier attempt left', async () => {
    await createStore(task('a'))
    writeFileSync(`${file}-layout-${LAYOUT_VERSION}`, 'half of a copy')
    const database = openDatabase(file)
    try {
      const step = (of: typeof database): void => of.exec('DELETE FROM tasks')
      expect(migrate(database, file, LAYOUT_VERSION, [...MIGRATIONS, step])).toBe(true)
      // The version is in the file, and not only in its log.
      expect(readFileSync(file).readUInt32BE(60)).toBe(LAYOUT_VERSION + 1)
    } finally {
      database.close()
    }
    expect(statSync(`${file}-layout-${LAYOUT_VERSION}`).mode & 0o777).toBe(0o600)
    expect(readStore(`${file}-layout-${LAYOUT_VERSION}`).tasks.map(({ id }) => id)).toEqual(['a'])
  })
})

it('timers and sockets have their turn between two writes that follow each other', async () => {
  const store = sqliteStore(file)
  store.open()
  let turns = 0
  setImmediate(() => (turns += 1))
  await store.write([{ table: 'tasks', put: task('a') }])
  expect(turns).toBe(1)
  setImmediate(() => (turns += 1))
  await store.write([{ table: 'tasks', put: task('b') }])
  expect(turns).toBe(2)
  store.close()
})

describe('the rows of a store', () => {
  it('are removed by their whole ids, whatever characters these have', async () => {
    await createStore(...['a\0b', 'a', 'say "it"', 'back\\slash'].map((id) => task(id)))
    const store = sqliteStore(file)
    store.open()
    await store.write(['a\0b', 'say "it"', 'back\\slash'].map((remove) => ({ table: 'tasks', remove })))
    store.close()
    expect(readStore(file).tasks.map(({ id }) => id)).toEqual(['a'])
  })

  it('have the commands of a task in the order of their places', async () => {
    const store = sqliteStore(file)
    store.open()
    const at = [10, 2, 1].map((index) => ({ id: `t/${index}`, taskId: 't', index, outcome: {} }))
    await store.write(at.map((row) => ({ table: 'commands', put: row })))
    store.close()
    expect(readStore(file).commands.map(({ index }) => index)).toEqual([1, 2, 10])
  })

  it('are refused when the column of an id is not that of its row', async () => {
    await createStore(task('a'))
    const database = openDatabase(file)
    database.exec("UPDATE tasks SET id = 'b'")
    database.close()
    expect(refusal(() => readStore(file))).toMatchObject({
      code: 'STORE_DAMAGED',
      message: expect.stringContaining('the row "b" of table tasks is damaged') as string,
    })
  })

  it('show their deadlines and ends in columns', async () => {
    await createStore({ ...task('a'), deadlineAt: 70, completedAt: 60 }, task('b'))
    const database = openDatabase(file)
    const rows = database.prepare('SELECT id, deadline_at, completed_at FROM tasks ORDER BY id').all()
    database.close()
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { id: 'a', deadline_at: 70, completed_at: 60 },
      { id: 'b', deadline_at: null, completed_at: null },
    ])
  })

  it('K9: can be locked when the owner that has lost its lock has ended', async () => {
    await createStore(task('a'))
    const owner = { ...identityOf(process.pid), file: realpathSync(file) }
    writeFileSync(`${file}-owner`, JSON.stringify(owner))
    expect(() => lockStore(file, 10)).toThrow(StoreInUseError)
    rmSync(`${file}-owner`)
    lockStore(file, 0)()
  })
})
