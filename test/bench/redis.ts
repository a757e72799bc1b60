/** Debian's Redis, for the figures that are compared with it. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of `redis-server`; undefined where there is none. */
export function findRedis(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, 'redis-server')).find((file) => existsSync(file))
}
