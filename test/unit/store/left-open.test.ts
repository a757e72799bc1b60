/** What an opening that is refused, and a second closing, leave behind: files, locks, and other users of a store. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { identityOf } from '../../../src/system/process-identity.js'
import { memoryStore, sqliteStore } from '../../../src/store/index.js'
import { hashOf, sessionFolder } from '../../../src/store/sessions/session-folder.js'
import { sessionStore } from '../../../src/store/sessions/session-store.js'
import { useStore } from '../../../src/store/shared-opening.js'
import { lockStore } from '../../../src/store/sqlite/owner-lock.js'
import { storedTask } from './stored-task.js'
import { StoreInUseError } from '../../../src/store/store-errors.js'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-left-open-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

it('K9: a session with a damaged file leaves none of its other files open', async () => {
  const folder = join(newFolder(), 'sessions')
  const stores = [1, 2].map(() => sessionStore(sessionFolder(folder, 'key'), () => true))
  for (const store of stores) store.open()
  await Promise.all(stores.map((store, index) => store.write([{ table: 'tasks', put: storedTask(`task-${index}`) }])))
  for (const store of stores) store.close()
  const [first, second] = [1, 2].map((number) => join(folder, `${hashOf('key')}-${number}.db`)) as [string, string]
  writeFileSync(second, 'no database'.repeat(1000))
  expect(() => sessionStore(sessionFolder(folder, 'key'), () => true).open()).toThrow(second)
  // The first file is free: another owner may have it.
  const other = sqliteStore(first)
  expect(other.open().tasks.map(({ id }) => id)).toEqual(['task-0'])
  other.close()
})

it('K9: a lock is given back when the store turns out to have an owner', () => {
  const file = join(newFolder(), 'tasks.db')
  const release = lockStore(file)
  // The owner has lost its lock, and lives.
  rmSync(`${file}-lock`)
  expect(() => lockStore(file, 10)).toThrow(StoreInUseError)
  release()
  expect(identityOf(process.pid)).toBeDefined()
  lockStore(file, 10)()
})

it('K9: a user that closes a store twice does not close it for the other user', async () => {
  const store = memoryStore()
  const close = vi.spyOn(store, 'close')
  const [asyncTasks, commandTasks] = [useStore(store, 'async tasks'), useStore(store, 'command tasks')]
  await asyncTasks.close()
  await asyncTasks.close()
  expect(close).not.toHaveBeenCalled()
  await commandTasks.close()
  expect(close).toHaveBeenCalledOnce()
})
