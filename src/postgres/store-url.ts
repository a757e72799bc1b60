/** Reads URLs of stores, from the command line and from configuration files. */
import { InvalidSettingError } from '../errors.js'
import type { PostgresStoreOptions } from './postgres-store.js'

/** Whether a text is the URL of a PostgreSQL database. Otherwise it is a file path. */
export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//i.test(text)

/**
 * Parses the URL of a store. It may have the parameters of `pg`, and `schema` and `session`.
 * @param setting the name of the setting in errors. Errors never show the URL, because it may contain a password
 * @throws InvalidSettingError for a text that is not a URL
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
