/** The schema of a store: creates it, or checks that it is one of this package. */
import { StoreError } from '../store/store-errors.js'
import type { Connection } from './connection.js'
import { LAYOUT_TABLE, LAYOUT_VERSION, type Statements } from './statements.js'

/**
 * Creates the schema, or its tables in an empty one, unless they exist, or brings an older layout to the present one. Of hosts that do so at once one waits for the other.
 * @param name what errors call the store
 * @throws StoreError for a schema that has tables of something else, or of a later version; nothing has changed then
 */
export async function prepareSchema(
  connection: Connection,
  statements: Statements,
  { schema, name }: { readonly schema: string; readonly name: string },
): Promise<void> {
  // A schema of this layout needs no rights to create anything.
  if ((await layoutOf(connection, statements, { schema, name })) === LAYOUT_VERSION) return
  await connection.query('BEGIN')
  try {
    await connection.query(statements.lockCreation)
    const layout = await layoutOf(connection, statements, { schema, name })
    if (layout === 0 && (await connection.query(statements.hasSchema, [schema])).length === 0) {
      await connection.query(statements.createSchema)
    }
    for (const statement of statements.layouts.slice(layout).flat()) await connection.query(statement)
    await connection.query(statements.setVersion)
    await connection.query('COMMIT')
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/**
 * The layout of a schema; 0 where it has no tables.
 * @throws StoreError as `prepareSchema` does
 */
export async function layoutOf(
  connection: Connection,
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
    throw new StoreError('STORE_DAMAGED', `${name}: the version of its layout is ${JSON.stringify(version)}.`)
  }
  if (version <= LAYOUT_VERSION) return version
  const message = `${name}: a later version of agent-tasks wrote it (layout ${version}, this one knows ${LAYOUT_VERSION}). Update agent-tasks.`
  throw new StoreError('STORE_NEWER', message)
}
