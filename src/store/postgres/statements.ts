/**
 * The tables of a schema, and the statements on them. Each statement names its schema and depends on no other statement, so that a connection pooler
 * can run each one on another connection. A write is one statement, and so needs one round trip and one commit.
 */

import { MAX_KEY_BYTES } from '../remote/rows.js'

export const LAYOUT_VERSION = 5

/** The first layouts with tables for rows and for a history. */
export const FIRST_LAYOUT = { rows: 1, history: 2 } as const

/** The table that marks a schema as one of this package. */
export const LAYOUT_TABLE = 'agent_tasks_layout'

/**
 * The key of the advisory lock under which a schema is created. It spells "agtk"
 * (https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS).
 */
const CREATION_LOCK = 0x6167746b

export type Statements = ReturnType<typeof statementsFor>

/** @param name the name of the schema */
export function statementsFor(name: string) {
  const schema = `"${name}"`
  return {
    lockCreation: `SELECT pg_advisory_xact_lock(${CREATION_LOCK})`,
    hasSchema: 'SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1',
    tables: `SELECT c.relname AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY c.relname`,
    version: `SELECT version FROM ${schema}.${LAYOUT_TABLE}`,
    createSchema: `CREATE SCHEMA ${schema}`,
    /** The migrations. The first one creates layout 1, and each later one leads to the next layout. */
    layouts: [
      [
        `CREATE TABLE ${schema}.${LAYOUT_TABLE} (version int NOT NULL)`,
        `INSERT INTO ${schema}.${LAYOUT_TABLE} VALUES (${LAYOUT_VERSION})`,
        `CREATE TABLE ${schema}.owners (
        session text PRIMARY KEY, epoch bigint NOT NULL, batch bigint NOT NULL, expires_at timestamptz NOT NULL, holder text NOT NULL)`,
        // The column has the type text, because jsonb refuses \u0000.
        `CREATE TABLE ${schema}.rows (
        session text NOT NULL, kind text NOT NULL, id text NOT NULL, seq double precision NOT NULL, body text NOT NULL, checksum bigint NOT NULL,
        PRIMARY KEY (session, kind, id))`,
        view(schema, 'tasks', 'tasks', ['owner', 'status', 'delivery', 'attempt', 'launchedAt', 'completedAt']),
        view(schema, 'command_tasks', 'commandTasks', ['instanceId', 'status', 'createdAt', 'completedAt']),
        view(schema, 'deliveries', 'deliveries', ['owner', 'state', 'at', 'taskIds']),
      ],
      [
        // This package computes the words, so that a search finds the same tasks in every kind of store.
        `CREATE TABLE ${schema}.history (
        session text NOT NULL, kind text NOT NULL, id text NOT NULL, owner text NOT NULL, name text NOT NULL, status text NOT NULL,
        completed_at double precision NOT NULL, bytes int NOT NULL, words tsvector NOT NULL, body text NOT NULL, checksum bigint NOT NULL,
        PRIMARY KEY (session, kind, id))`,
        `CREATE INDEX history_by_end ON ${schema}.history (session, kind, completed_at, id COLLATE "C")`,
        `CREATE INDEX history_by_words ON ${schema}.history USING gin (words)`,
      ],
      [view(schema, 'feature_states', 'featureStates', ['feature', 'data'])],
      [shortIds(`${schema}.rows`), shortIds(`${schema}.history`)],
      [view(schema, 'turns', 'turns/%', ['owner', 'seq', 'at', 'messages'])],
    ],
    encoding: `SELECT current_setting('server_encoding') AS encoding`,
    setVersion: `UPDATE ${schema}.${LAYOUT_TABLE} SET version = ${LAYOUT_VERSION}`,

    /** Parameters: $1 session, $2 lease in ms, $3 holder. Returns one row when the caller has taken the store. */
    take: `INSERT INTO ${schema}.owners AS o (session, epoch, batch, expires_at, holder)
      VALUES ($1, 1, 0, ${after('$2')}, $3)
      ON CONFLICT (session) DO UPDATE SET epoch = o.epoch + 1, expires_at = excluded.expires_at, holder = excluded.holder
      WHERE o.expires_at <= clock_timestamp()
      RETURNING epoch::float8 AS epoch, batch::float8 AS batch, ${DURABLY}`,
    /** Parameter: $1 session. */
    owner: `SELECT epoch::float8 AS epoch, batch::float8 AS batch, holder, extract(epoch FROM expires_at)::float8 AS until,
      extract(epoch FROM expires_at - clock_timestamp())::float8 * 1000 AS "leftMs" FROM ${schema}.owners WHERE session = $1`,
    /** Parameters: $1 session, $2 lease in ms, $3 epoch. Returns one row while the caller owns the store. */
    renew: `UPDATE ${schema}.owners SET expires_at = ${after('$2')} WHERE session = $1 AND epoch = $3 RETURNING 1 AS one`,
    /** Parameters: $1 session, $2 epoch. */
    release: `UPDATE ${schema}.owners SET expires_at = clock_timestamp() WHERE session = $1 AND epoch = $2`,
    /**
     * Parameters: $1 session, $2 epoch, $3 batch. A write adds 1 to the batch number, and this adds 2. A write with the old number that is still on its
     * way then has no effect.
     */
    fence: `UPDATE ${schema}.owners SET batch = batch + 2 WHERE session = $1 AND epoch = $2 AND batch = $3 RETURNING ${DURABLY}`,

    /** All sessions that have or had an owner, with their present owners. */
    sessions: `SELECT session, CASE WHEN expires_at > clock_timestamp() THEN holder END AS holder FROM ${schema}.owners ORDER BY session`,

    /** Parameters: $1 session, $2 kinds. Null does not restrict. */
    read: `SELECT kind, id, body, checksum::float8 AS checksum FROM ${schema}.rows
      WHERE session = $1 AND ($2::text[] IS NULL OR kind = ANY ($2)) ORDER BY kind, seq, id`,
    /** Parameters: $1 session, $2 kind, $3 limit. */
    last: `SELECT kind, id, body, checksum::float8 AS checksum FROM ${schema}.rows WHERE session = $1 AND kind = $2 ORDER BY seq DESC LIMIT $3`,
    /**
     * Parameters: $1 session, $2 lease in ms, $3 epoch, $4 batch. Then the rows to remove ($5 kinds, $6 ids) and the rows to put ($7 kinds, $8 ids,
     * $9 seqs, $10 bodies, $11 checksums).
     */
    write: `WITH owner AS (
        UPDATE ${schema}.owners SET batch = batch + 1, expires_at = ${after('$2')}
        WHERE session = $1 AND epoch = $3 AND batch = $4 RETURNING session, ${DURABLY}),
      removed AS (
        DELETE FROM ${schema}.rows r USING owner, unnest($5::text[], $6::text[]) AS gone (kind, id)
        WHERE r.session = owner.session AND r.kind = gone.kind AND r.id = gone.id),
      put AS (${putRows(schema, 'owner', 7)})
      SELECT 1 AS one FROM owner`,
    /** Puts further rows, in a transaction that began with `write`. Parameters: $1 session, and then as $7 to $11 of `write`. */
    putMore: putRows(schema, '(VALUES ($1::text)) AS owner (session)', 2),

    /**
     * For a transaction of the caller that has written something, and so has an id. Parameters: $1 session, $2 epoch, $3 id, $4 body, $5 checksum. The lock
     * on the owner's row lets no other owner take the session before the transaction ends. In a string of JSON, quotes are escaped, so the text that is
     * looked for is the field of the row.
     */
    accept: `WITH begun AS MATERIALIZED (SELECT txid_current_if_assigned() IS NOT NULL AS yes),
      owner AS (SELECT o.session FROM ${schema}.owners o, begun WHERE begun.yes AND o.session = $1 AND o.epoch = $2 FOR SHARE OF o),
      accepted AS (
        UPDATE ${schema}.rows r SET body = $4, checksum = $5 FROM owner
        WHERE r.session = owner.session AND r.kind = 'deliveries' AND r.id = $3 AND strpos(r.body, '"state":"sent"') > 0 RETURNING 1)
      SELECT begun.yes AS "isInTransaction", EXISTS (SELECT FROM owner) AS "isOwner", EXISTS (SELECT FROM accepted) AS "isAccepted" FROM begun`,
    /** Parameters: $1 session, $2 id. Waits for a transaction that has changed the row. */
    isCommitted: `SELECT strpos(body, '"isCommitted":true') > 0 AS "isCommitted" FROM ${schema}.rows
      WHERE session = $1 AND kind = 'deliveries' AND id = $2 FOR SHARE`,

    history: historyStatements(schema),
  }
}

const historyStatements = (schema: string) => ({
  /**
   * Parameters: $1 session, and then arrays: $2 kinds, $3 ids, $4 owners, $5 names, $6 statuses, $7 ends, $8 bytes, $9 words, $10 bodies, $11 checksums.
   */
  add: `INSERT INTO ${schema}.history
    SELECT $1, n.kind, n.id, n.owner, n.name, n.status, n.completed_at, n.bytes, array_to_tsvector(array_remove(string_to_array(n.words, ' '), '')),
      n.body, n.checksum
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::int[], $9::text[], $10::text[], $11::bigint[])
      AS n (kind, id, owner, name, status, completed_at, bytes, words, body, checksum)
    ON CONFLICT (session, kind, id) DO UPDATE SET owner = excluded.owner, name = excluded.name, status = excluded.status,
      completed_at = excluded.completed_at, bytes = excluded.bytes, words = excluded.words, body = excluded.body, checksum = excluded.checksum
    RETURNING ${DURABLY}`,
  /** Parameters: $1 session, $2 kind, $3 id. */
  find: `SELECT id, body, checksum::float8 AS checksum FROM ${schema}.history WHERE session = $1 AND kind = $2 AND id = $3`,
  /**
   * Parameters: $1 session, $2 kind, $3 earliest end, $4 owner, $5 name, $6 status, $7 words, $8 and $9 the end and the id before which tasks are
   * wanted, $10 limit. Null does not restrict.
   */
  query: `SELECT id, body, checksum::float8 AS checksum FROM ${schema}.history
    WHERE session = $1 AND kind = $2 AND completed_at >= $3::float8 AND ($4::text IS NULL OR owner = $4) AND ($5::text IS NULL OR name = $5)
      AND ($6::text IS NULL OR status = $6) AND ($7::text IS NULL OR words @@ $7::tsquery)
      AND ($8::float8 IS NULL OR (completed_at, id COLLATE "C") < ($8::float8, $9::text COLLATE "C"))
    ORDER BY completed_at DESC, id COLLATE "C" DESC LIMIT $10`,
  /** Parameters: $1 session, $2 how many. Each row also has the number and the size of all tasks. */
  earliest: `SELECT kind, id, completed_at AS "completedAt", history.bytes, total.tasks, total.bytes AS total FROM ${schema}.history,
      (SELECT count(*)::float8 AS tasks, coalesce(sum(bytes), 0)::float8 AS bytes FROM ${schema}.history WHERE session = $1) AS total
    WHERE session = $1 ORDER BY completed_at LIMIT $2`,
  /** Parameters: $1 session, $2 kinds, $3 ids. */
  remove: `DELETE FROM ${schema}.history h USING unnest($2::text[], $3::text[]) AS gone (kind, id)
    WHERE h.session = $1 AND h.kind = gone.kind AND h.id = gone.id`,
})

/**
 * A column that makes the server confirm the transaction of its statement only when it is on the disk, also with `synchronous_commit = off`. Other
 * settings are kept. A setting of the session would reach other users of a connection pooler.
 */
const DURABLY = `set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true) AS durably`

/** Puts rows for a session. Parameters from the given number on: kinds, ids, seqs, bodies, checksums. */
function putRows(schema: string, owner: string, from: number): string {
  const arrays = ['text', 'text', 'float8', 'text', 'bigint'].map((type, at) => `$${from + at}::${type}[]`)
  return `INSERT INTO ${schema}.rows (session, kind, id, seq, body, checksum)
    SELECT owner.session, n.kind, n.id, n.seq, n.body, n.checksum
    FROM ${owner}, unnest(${arrays.join(', ')}) AS n (kind, id, seq, body, checksum)
    ON CONFLICT (session, kind, id) DO UPDATE SET seq = excluded.seq, body = excluded.body, checksum = excluded.checksum`
}

/** Shortens the ids of rows as `keyOf` does. */
const shortIds = (table: string): string =>
  `UPDATE ${table} SET id = 'sha256:' || encode(sha256(convert_to(id, 'UTF8')), 'hex') WHERE octet_length(id) > ${MAX_KEY_BYTES}`

/** Returns the SQL for a time this many ms from now, by the clock of the server. */
const after = (ms: string): string => `clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`

/** Replaces NUL and lone surrogates by the replacement character. JSON allows them, but a text of PostgreSQL does not. Only the views use this. */
const READABLE = String.raw`regexp_replace(body, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'g')::json`

/** Creates a view that shows the fields of rows as columns, for people. The values are JSON, as in the rows. */
function view(schema: string, name: string, kind: string, fields: readonly string[]): string {
  const columns = fields.map((field) => `body -> '${field}' AS ${toSnakeCase(field)}`)
  return `CREATE VIEW ${schema}.${name} AS SELECT session, id, ${columns.join(', ')}
    FROM (SELECT session, id, ${READABLE} AS body FROM ${schema}.rows WHERE kind LIKE '${kind}') AS readable`
}

const toSnakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
