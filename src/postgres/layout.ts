/** The schema of a store: creates it, or checks that it is one of this package. */
import { StoreError } from '../store/store-errors.js'
import type { Connection } from './connection.js'
import { LAYOUT_TABLE, LAYOUT_VERSION, type Statements } from './statements.js'

/**
 * Creates the schema, or its tables in an empty one, unless they exist. Of hosts that do so at once one waits for the other.
 * @param name what errors call the store
 * @throws StoreError for a schema that has tables of something else, or of a later version; nothing has changed then
 */
export async function prepareSchema(
  connection: Connection,
  statements: Statements,
  { schema, name }: { readonly schema: string; readonly name: string },
): Promise<void> {
  // An existing schema needs no rights to create anything.
  if (await hasLayout(connection, statements, { schema, name })) return
  await connection.query('BEGIN')
  try {
    await connection.query(statements.lockCreation)
    if (!(await hasLayout(connection, statements, { schema, name }))) await create(connection, statements, schema)
    await connection.query('COMMIT')
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

async function create(connection: Connection, statements: Statements, schema: string): Promise<void> {
  const exists = (await connection.query(statements.hasSchema, [schema])).length > 0
  if (!exists) await connection.query(statements.createSchema)
  for (const statement of statements.create) await connection.query(statement)
}

/**
 * Whether the schema has the tables of a store.
 * @throws StoreError as `prepareSchema` does
 */
export async function hasLayout(
  connection: Connection,
  statements: Statements,
  { schema, name }: { readonly schema: string; readonly name: string },
): Promise<boolean> {
  const tables = (await connection.query(statements.tables, [schema])).map((row) => row['name'])
  if (tables.length === 0) return false
  if (!tables.includes(LAYOUT_TABLE)) {
    const message = `${name}: the schema belongs to another program: it has a table ${JSON.stringify(tables[0])}. Use another schema.`
    throw new StoreError('STORE_INVALID', message)
  }
  const [row] = await connection.query(statements.version)
  const version = row?.['version']
  if (version === LAYOUT_VERSION) return true
  if (typeof version !== 'number' || version < LAYOUT_VERSION) {
    throw new StoreError('STORE_DAMAGED', `${name}: the version of its layout is ${JSON.stringify(version)}.`)
  }
  const message = `${name}: a later version of agent-tasks wrote it (layout ${version}, this one knows ${LAYOUT_VERSION}). Update agent-tasks.`
  throw new StoreError('STORE_NEWER', message)
}
