/** What someone may have put beside a store: a cloned repository can contain symbolic links. And where a store is. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { sqliteStore } from '../../../src/store/index.js'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-links-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

it('writes its owner through no link', () => {
  const precious = join(folder, 'precious')
  writeFileSync(precious, 'precious')
  symlinkSync(precious, `${file}-owner.new`)
  const store = sqliteStore(file)
  store.open()
  store.close()
  expect(readFileSync(precious, 'utf8')).toBe('precious')
})

it.each(['-lock', '-runs'])('refuses a link that ends in %s, and creates nothing behind it', (end) => {
  const target = join(folder, 'target')
  symlinkSync(target, `${file}${end}`)
  expect(() => sqliteStore(file).open()).toThrow(expect.objectContaining({ code: 'STORE_INVALID' }) as Error)
  expect(() => sqliteStore(file).open()).toThrow(`${file}${end}: stores do not follow symbolic links`)
  expect(existsSync(target)).toBe(false)
  expect(existsSync(file)).toBe(false)
})

it('names the lock when that is damaged, and not the store', () => {
  const store = sqliteStore(file)
  store.open()
  store.close()
  writeFileSync(`${file}-lock`, 'no database '.repeat(100))
  expect(() => sqliteStore(file).open()).toThrow(
    `${file}-lock: this file cannot be locked. It contains no data: remove it.`,
  )
})

it('stays where it was when the working directory changes', async () => {
  const before = process.cwd()
  const other = join(folder, 'other')
  mkdirSync(other)
  process.chdir(folder)
  onTestFinished(() => process.chdir(before))
  const store = sqliteStore('tasks.db')
  store.open()
  process.chdir(other)
  await store.write([{ table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: [] } }])
  store.close()
  expect(sqliteStore(file).open().deliveries).toHaveLength(1)
})
