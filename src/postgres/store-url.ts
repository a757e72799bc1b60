/** URLs of stores, for the command line and configuration files. */
import { InvalidSettingError } from '../errors.js'
import type { PostgresStoreOptions } from './postgres-store.js'

/** Whether a text is a PostgreSQL URL, and not a file path. */
export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//i.test(text)

/**
 * Parses a URL. Besides the parameters of `pg`, it may have `schema` and `session`.
 * @param setting the name of the setting in errors, which never show the URL because it may contain a password
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
