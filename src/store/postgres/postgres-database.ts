/** The operations of a store in a schema of PostgreSQL. */
import { isBeginning, wordsOf } from '../history/search-words.js'
import type { PastTaskQuery } from '../history/task-history.js'
import { keyOf } from '../remote/rows.js'
import type { Acceptance, EarliestTask, StoreDatabase, StoreOwner } from '../remote/store-database.js'
import { textOf } from '../row-text.js'
import { Connection, type PostgresClient } from './connection.js'
import { checkEncoding, layoutOf, prepareSchema } from './layout.js'
import { outcomeOf, toStoreError } from './postgres-failure.js'
import { FIRST_LAYOUT, statementsFor } from './statements.js'

/** The columns of the parameters of `write`, `putMore` and `history.add`. */
const KEY = ['kind', 'id'] as const
const ROW = [...KEY, 'place', 'body', 'checksum'] as const
const PAST = [...KEY, 'owner', 'name', 'status', 'completedAt', 'bytes', 'words', 'body', 'checksum'] as const

/** Prepares access to a schema. The first operation connects. */
export function postgresDatabase(
  connect: () => Promise<PostgresClient>,
  schema: string,
  address: string,
): StoreDatabase {
  const connection = new Connection(connect)
  const statements = statementsFor(schema)
  const { query } = connection
  const name = `${address} (schema ${schema})`
  const place = { schema, name }
  return {
    nameOf: (session) => (session === undefined ? name : `${address} (schema ${schema}, session ${session})`),
    prepare: async () => {
      await checkEncoding(connection, statements, name)
      await prepareSchema(connection, statements, place)
    },
    has: async (part) => (await layoutOf(connection, statements, place)) >= FIRST_LAYOUT[part],
    take: async (session, leaseMs, holder) =>
      (await query(statements.take, [session, leaseMs, holder]))[0] as StoreOwner | undefined,
    owner: async (session) => (await query(statements.owner, [session]))[0] as StoreOwner | undefined,
    renew: async (session, leaseMs, epoch) => (await query(statements.renew, [session, leaseMs, epoch])).length > 0,
    release: async (session, epoch) => {
      await query(statements.release, [session, epoch])
    },
    fence: async (session, epoch, batch) => {
      await query(statements.fence, [session, epoch, batch])
    },
    sessions: async () => {
      const rows = await query(statements.sessions)
      return (rows as unknown as { session: string; holder: string | null }[]).map(({ session, holder }) => ({
        session,
        holder: holder ?? undefined,
      }))
    },
    read: (session, kinds) => query(statements.read, [session, kinds ?? null]),
    last: async (session, kind, limit) => {
      const rows = await query(statements.last, [session, kind, limit === Infinity ? null : limit])
      return rows.toReversed()
    },
    write: async (session, leaseMs, { epoch, batch }, { removed, parts: [first = [], ...others] }) => {
      const values = [session, leaseMs, epoch, batch, ...columns(removed, KEY), ...columns(first, ROW)]
      if (others.length === 0) return (await query(statements.write, values)).length > 0
      return connection.transaction(async (inTransaction) => {
        if ((await inTransaction(statements.write, values)).length === 0) return false
        for (const part of others) await inTransaction(statements.putMore, [session, ...columns(part, ROW)])
        return true
      })
    },
    accept: async (client, session, epoch, { id, body, checksum }) => {
      const { rows } = await client.query(statements.accept, [session, epoch, id, body, checksum])
      return rows[0] as Acceptance
    },
    isCommitted: async (session, id) =>
      (await query(statements.isCommitted, [session, keyOf(id)]))[0]?.['isCommitted'] === true,
    history: {
      add: async (session, rows) => {
        await query(statements.history.add, [session, ...columns(rows, PAST)])
      },
      find: async (session, { kind, id }) => (await query(statements.history.find, [session, kind, id]))[0],
      query: (session, wanted, earliest) =>
        query(statements.history.query, [session, ...toConditions(wanted, earliest)]),
      earliest: async (session, most) =>
        (await query(statements.history.earliest, [session, most])) as unknown as EarliestTask[],
      remove: async (session, keys) => {
        await query(statements.history.remove, [session, ...columns(keys, KEY)])
      },
    },
    outcomeOf,
    toStoreError,
    close: () => connection.close(),
  }
}

/** Returns one array for each column. */
const columns = <Item extends object>(rows: readonly Item[], names: readonly (keyof Item)[]): unknown[][] =>
  names.map((name) => rows.map((row) => row[name]))

/** Returns the parameters $2 to $10 of the statement `query`. They are null for columns that the query does not restrict. */
function toConditions({ kind, owner, name, status, text, before, limit }: PastTaskQuery, earliest: number): unknown[] {
  const words = text === undefined ? [] : wordsOf(text)
  const search = words.map((word) => (isBeginning(word) ? `'${word}':*` : `'${word}'`)).join(' & ')
  const texts = [owner, name, status].map((value) => (value === undefined ? null : textOf(value)))
  const place = [before?.completedAt ?? null, before === undefined ? null : keyOf(before.id)]
  return [kind, earliest, ...texts, words.length === 0 ? null : search, ...place, limit]
}
