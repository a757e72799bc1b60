/** URLs of stores, as the command line and configurations have them. */
import { InvalidSettingError } from '../errors.js'
import type { PostgresStoreOptions } from './postgres-store.js'

/** Whether a text is the URL of a PostgreSQL, and not the path of a file. */
export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//i.test(text)

/**
 * Reads a URL. Besides what `pg` takes, it may have the parameters `schema` and `session`.
 * @param setting what errors call it. They do not show the URL, which may have a password
 * @throws InvalidSettingError
 */
export function parsePostgresUrl(
  text: string,
  setting: string,
): Pick<PostgresStoreOptions, 'schema' | 'session'> & { readonly connection: string } {
  if (!URL.canParse(text)) throw new InvalidSettingError(setting, '(a URL)', 'postgres://USER@HOST:PORT/DATABASE')
  const url = new URL(text)
  const take = (name: string): string | undefined => {
    const value = url.searchParams.get(name)
    url.searchParams.delete(name)
    return value ?? undefined
  }
  const [schema, session] = [take('schema'), take('session')]
  return {
    connection: url.href,
    ...(schema !== undefined && { schema }),
    ...(session !== undefined && { session }),
  }
}
