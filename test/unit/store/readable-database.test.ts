/** Databases that are opened for reading leave nothing behind. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/store/sqlite/driver.js'
import { openToInspect } from '../../../src/store/sqlite/readable-database.js'

it.each([
  ['without a log', undefined],
  ['with an empty log', ''],
])('a database %s is inspected, and no file appears beside it', (_, log) => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-inspected-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'own.db')
  const database = openDatabase(file)
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE notes (text)')
  database.close()
  if (log !== undefined) writeFileSync(`${file}-wal`, log)
  const before = readdirSync(folder)
  const { database: opened, close } = openToInspect(file)
  expect(opened.prepare('SELECT count(*) AS count FROM notes').get()).toMatchObject({ count: 0 })
  close()
  expect(readdirSync(folder)).toEqual(before)
})
