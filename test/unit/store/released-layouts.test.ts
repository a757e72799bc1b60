/** A store of every layout that was released opens with all of its content. `npm run store-fixture` writes the file for a new layout. */
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { readStore, sqliteStore, type StoreContents } from '../../../src/store/index.js'
import { openDatabase } from '../../../src/store/sqlite/driver.js'
import { migrate } from '../../../src/store/sqlite/migrations.js'
import { LAYOUT_VERSION } from '../../../src/store/sqlite/schema.js'

const fixtures = fileURLToPath(new URL('fixtures', import.meta.url))
const layouts = Array.from({ length: LAYOUT_VERSION }, (_, at) => at + 1)

const contentOf = (layout: number): StoreContents =>
  ({
    featureStates: [],
    turns: [],
    ...JSON.parse(readFileSync(join(fixtures, `layout-${layout}.json`), 'utf8')),
  }) as StoreContents

/** A copy of the file, as a user has it. */
function copyOf(layout: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-layout-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'tasks.db')
  copyFileSync(join(fixtures, `layout-${layout}.db`), file)
  return file
}

it('K11: there is a small file for each layout, and no other', () => {
  const files = readdirSync(fixtures).filter((name) => name.endsWith('.db'))
  expect(files.sort()).toEqual(layouts.map((layout) => `layout-${layout}.db`).sort())
  for (const name of files) expect(statSync(join(fixtures, name)).size).toBeLessThan(128 * 1024)
})

describe.each(layouts)('a store of layout %i', (layout) => {
  it('K11: opens with its content intact, and with a copy aside if it was migrated', () => {
    const file = copyOf(layout)
    const store = sqliteStore(file)
    const contents = store.open()
    store.close()
    expect(contents).toEqual({ ...contentOf(layout), turns: [] })
    expect(readStore(file)).toEqual(contentOf(layout))
    expect(existsSync(`${file}-layout-${layout}`)).toBe(layout < LAYOUT_VERSION)
  })

  it('K11: is written and read again', async () => {
    const file = copyOf(layout)
    const store = sqliteStore(file)
    store.open()
    await store.write([{ table: 'tasks', remove: 'cancelled' }])
    store.close()
    expect(readStore(file).tasks.map(({ id }) => id)).not.toContain('cancelled')
    expect(readStore(file).tasks).toHaveLength(contentOf(layout).tasks.length - 1)
  })

  it('K11: is taken over by a manager', async () => {
    const manager = new AsyncTaskManager({
      store: sqliteStore(copyOf(layout)),
      wasDelivered: (id) => id === 'delivery-2',
    })
    onTestFinished(() => manager.dispose())
    expect(await manager.recovered).toMatchObject({ interrupted: ['running'], uncertain: [] })
    const owed = manager.getPendingNotifications().map(({ id }) => id)
    expect(owed.sort()).toEqual(['failed', 'odd \0 "\u{1F600}', 'owed', 'running'].sort())
  })

  it('K11: leaves a copy aside with its content when a step changes it', () => {
    const file = copyOf(layout)
    const database = openDatabase(file)
    const drop = Array.from({ length: layout }, () => (of: typeof database) => of.exec('DELETE FROM tasks'))
    expect(migrate(database, file, layout, drop)).toBe(true)
    database.close()
    expect(readStore(`${file}-layout-${layout}`)).toEqual(contentOf(layout))
  })
})
