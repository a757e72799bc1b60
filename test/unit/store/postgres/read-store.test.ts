import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { InvalidSettingError } from '../../../../src/errors.js'
import { postgresStore, readPostgresHistory, readPostgresStore } from '../../../../src/store/postgres/index.js'
import { LAYOUT_VERSION } from '../../../../src/store/postgres/statements.js'
import { shownLocation, storeUrlAt } from '../../../../src/store/locations/store-url.js'
import { openStore } from '../../../../src/store/index.js'
import { localPostgres, type LocalPostgres } from '../../../support/pglite.js'
import { storedTask } from '../stored-task.js'

let postgres: LocalPostgres

beforeAll(async () => {
  postgres = await localPostgres()
})
afterAll(() => postgres.close())

const at = (schema: string, session?: string) => ({
  connection: postgres.connect,
  schema,
  ...(session !== undefined && { session }),
})

const idsIn = (sessions: Awaited<ReturnType<typeof readPostgresStore>>): unknown[] =>
  sessions.map(({ session, holder, read }) => [
    session,
    holder === undefined ? undefined : 'held',
    'error' in read ? read.error.message : read.contents.tasks.map(({ id }) => id),
  ])

describe('a store that is read', () => {
  it('shows its sessions, and who has them, and changes nothing', async () => {
    expect(await readPostgresStore(at('nothing'))).toEqual([])
    expect(await readPostgresHistory(at('nothing'), { kind: 'task', limit: 10 })).toEqual([])
    const open = await openStore(postgresStore(at('shown', 'a')))
    await open.write([{ table: 'tasks', put: storedTask('one') }])
    const closed = await openStore(postgresStore(at('shown', 'b')))
    await closed.write([{ table: 'tasks', put: storedTask('two') }])
    await closed.close()
    expect(idsIn(await readPostgresStore(at('shown')))).toEqual([
      ['a', 'held', ['one']],
      ['b', undefined, ['two']],
    ])
    expect(idsIn(await readPostgresStore(at('shown', 'b')))).toEqual([['b', undefined, ['two']]])
    await open.write([{ table: 'tasks', put: storedTask('three') }])
    await postgres.database.query(`UPDATE shown.rows SET body = body || ' ' WHERE id = 'two'`)
    expect(idsIn(await readPostgresStore(at('shown')))).toEqual([
      ['a', 'held', ['one', 'three']],
      ['b', undefined, 'PostgreSQL (schema shown), session b: the row "two" of tasks is damaged.'],
    ])
    await open.close()
  })

  it('shows the history of its sessions', async () => {
    for (const session of ['a', 'b']) {
      const open = await openStore(postgresStore(at('past', session)))
      const task = { kind: 'task' as const, owner: 'main', name: 'x', status: 'completed', completedAt: Date.now() }
      await open.history?.add([{ ...task, id: `of ${session}`, record: { goalPrompt: session } }])
      await open.close()
    }
    const ids = async (session?: string) =>
      (await readPostgresHistory(at('past', session), { kind: 'task', limit: 10 })).map(({ id }) => id)
    expect(await ids()).toEqual(['of a', 'of b'])
    expect(await ids('b')).toEqual(['of b'])
    await postgres.database.query(`UPDATE past.history SET body = body || ' '`)
    await expect(ids()).rejects.toThrow('the row "of a" of the history is damaged')
  })

  it('is brought to the present layout by its next owner, with its content', async () => {
    const first = await openStore(postgresStore(at('older')))
    await first.write([{ table: 'tasks', put: storedTask('one') }])
    await first.close()
    await postgres.database.exec(
      'DROP TABLE older.history; DROP VIEW older.feature_states; DROP VIEW older.turns; UPDATE older.agent_tasks_layout SET version = 1',
    )
    expect(idsIn(await readPostgresStore(at('older')))).toEqual([['default', undefined, ['one']]])
    expect(await readPostgresHistory(at('older'), { kind: 'task', limit: 10 })).toEqual([])
    const next = await openStore(postgresStore(at('older')))
    expect(next.open().tasks.map(({ id }) => id)).toEqual(['one'])
    expect(await next.history?.query({ kind: 'task', limit: 10 })).toEqual([])
    await next.close()
    const { rows } = await postgres.database.query('SELECT version FROM older.agent_tasks_layout')
    expect(rows).toEqual([{ version: LAYOUT_VERSION }])
  })
})

describe('the URL of a store', () => {
  const optionsAt = (location: string, session?: string) => storeUrlAt(location, 'store', session)?.options

  it('may name a schema and a session', () => {
    const options = {
      connection: 'postgres://u:p@h:5433/d?sslmode=require',
      schema: 's',
      session: 'the key',
    }
    const url = 'postgres://u:p@h:5433/d?schema=s&session=the%20key&sslmode=require'
    expect(optionsAt(url)).toEqual(options)
    expect(optionsAt(url, 'other')).toEqual(options)
    expect(optionsAt('postgresql://h/d')).toEqual({ connection: 'postgresql://h/d' })
    expect(optionsAt('postgresql://h/d', 'mine')).toEqual({ connection: 'postgresql://h/d', session: 'mine' })
  })

  it('is told from a path, and is not shown in errors and messages', () => {
    const locations = ['postgres://h', 'POSTGRESQL://h', './postgres', 'postgres:/x', '']
    expect(locations.map((location) => optionsAt(location) !== undefined)).toEqual([true, true, false, false, false])
    expect(() => storeUrlAt('postgres://u:secret@[', 'tasks.store')).toThrow(
      new InvalidSettingError('tasks.store', '(a URL)', 'postgres://USER@HOST:PORT/DATABASE'),
    )
    const shown = ['postgresql://u:secret@h:5/d?password=secret', 'postgres://u:secret@[', './tasks.db']
    expect(shown.map(shownLocation)).toEqual(['postgres://h:5/d', 'postgres://…', './tasks.db'])
  })
})
