/** A store in a folder that cannot be written, such as a backup: SQLite cannot create the file beside it that readers of its log share. */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import type * as driver from '../../../src/store/sqlite/driver.js'
import { storedTask } from './stored-task.js'

/** The folder that cannot be written. The user of the tests may be allowed to write everywhere, so SQLite is told. */
let backup = ''

vi.mock('../../../src/store/sqlite/driver.js', async (load) => {
  const real = await load<typeof driver>()
  const openDatabase: typeof real.openDatabase = (file, options) => {
    const isUnwritable = backup !== '' && file.startsWith(backup)
    if (isUnwritable) throw Object.assign(new Error('unable to open database file'), { errcode: 14 })
    return real.openDatabase(file, options)
  }
  return { ...real, openDatabase }
})
const { readStore, sqliteStore } = await import('../../../src/store/index.js')

/** A copy of a store while it is open, so that its last writes are in its log; and an empty folder for temporary files. */
async function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-backup-'))
  onTestFinished(() => {
    backup = ''
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true })
  })
  const [temporary, file] = [join(folder, 'tmp'), join(folder, 'tasks.db')]
  mkdirSync(temporary)
  const store = sqliteStore(file)
  store.open()
  await store.write([{ table: 'tasks', put: storedTask('in the log') }])
  const copied = join(folder, 'backup')
  mkdirSync(copied)
  const copy = join(copied, 'tasks.db')
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, copy + suffix)
  store.close()
  backup = copied
  vi.stubEnv('TMPDIR', temporary)
  return { copy, temporary }
}

it('is read with its log, from a copy that is removed', async () => {
  const { copy, temporary } = await setUp()
  expect(readStore(copy).tasks.map(({ id }) => id)).toEqual(['in the log'])
  expect(readdirSync(temporary)).toEqual([])
})

it('is an error when its copy cannot be opened either, and no copy is left', async () => {
  const { copy, temporary } = await setUp()
  backup = join(copy, '../..')
  expect(() => readStore(copy)).toThrow(`${copy}: it cannot be opened`)
  expect(readdirSync(temporary)).toEqual([])
})
