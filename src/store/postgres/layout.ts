/** Creates the schema of a store, or checks that it belongs to this package. */
import { StoreError } from '../store-errors.js'
import type { Connection } from './connection.js'
import { LAYOUT_TABLE, LAYOUT_VERSION, type Statements } from './statements.js'

/**
 * Creates the schema and its tables if they are missing, or migrates an older layout. Hosts that do this at the same time wait for each other.
 * @param name the name of the store in errors
 * @throws StoreError for a schema with other tables, and for one of a later version; the schema is left unchanged
 */
export async function prepareSchema(
  connection: Connection,
  statements: Statements,
  { schema, name }: { readonly schema: string; readonly name: string },
): Promise<void> {
  // The layout is checked first. If it is current, nothing is created, and the user needs no right to create tables.
  if ((await layoutOf(connection, statements, { schema, name })) === LAYOUT_VERSION) return
  await connection.transaction(async (query) => {
    await query(statements.lockCreation)
    const layout = await layoutOf({ query }, statements, { schema, name })
    if (layout === 0 && (await query(statements.hasSchema, [schema])).length === 0) await query(statements.createSchema)
    for (const statement of statements.layouts.slice(layout).flat()) await query(statement)
    await query(statements.setVersion)
  })
}

/** @throws StoreError when the database cannot hold every text. SQL_ASCII keeps all bytes as they are */
export async function checkEncoding(connection: Connection, statements: Statements, name: string): Promise<void> {
  const [row] = await connection.query(statements.encoding)
  const encoding = String(row?.['encoding'])
  if (encoding === 'UTF8' || encoding === 'SQL_ASCII') return
  const message = `${name}: the encoding of the database is ${encoding}, which cannot hold every text. Use a database that was created with ENCODING 'UTF8'.`
  throw new StoreError('STORE_INVALID', message)
}

/**
 * Returns the layout version of a schema; 0 when it has no tables.
 * @throws StoreError as `prepareSchema` does
 */
export async function layoutOf(
  connection: Pick<Connection, 'query'>,
  statements: Statements,
  { schema, name }: { readonly schema: string; readonly name: string },
): Promise<number> {
  const tables = (await connection.query(statements.tables, [schema])).map((row) => row['name'])
  if (tables.length === 0) return 0
  if (!tables.includes(LAYOUT_TABLE)) {
    const message = `${name}: the schema belongs to another program: it has a table ${JSON.stringify(tables[0])}. Use another schema.`
    throw new StoreError('STORE_INVALID', message)
  }
  const [row] = await connection.query(statements.version)
  const version = row?.['version']
  if (typeof version !== 'number' || version < 1) {
    throw new StoreError(
      'STORE_DAMAGED',
      `${name}: the version of the layout is ${JSON.stringify(version)}, expected a number from 1 to ${LAYOUT_VERSION}.`,
    )
  }
  if (version <= LAYOUT_VERSION) return version
  const message = `${name}: a later version of agent-tasks wrote it (layout ${version}, this one knows ${LAYOUT_VERSION}). Update agent-tasks.`
  throw new StoreError('STORE_NEWER', message)
}
