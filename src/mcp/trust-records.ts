/**
 * Records in the user's own folder which configuration files the user trusts. Each configuration file has its own record, named by the hash of its path.
 * So two processes that write at the same time do not overwrite each other, and a damaged record affects only one configuration file.
 */
import { createHash, randomUUID } from 'node:crypto'
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { systemClock } from '../system/clock.js'
import { ConfigFileError } from '../errors.js'
import { describeFailure } from '../protocol/outcomes.js'
import { readFoundFile } from './found-file.js'

export type Environment = Readonly<Record<string, string | undefined>>

export type TrustState =
  | { readonly state: 'trusted' | 'changed' | 'unknown' }
  /** The record exists, but cannot be used. */
  | { readonly state: 'damaged'; readonly record: string; readonly problem: string }

const recordSchema = z.strictObject({
  path: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  trustedAt: z.string(),
})

/** The SHA-256 of a file's content. */
export const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/**
 * The folders of the records. There can be two, because the user's shell may set XDG_CONFIG_HOME, and many MCP clients start servers without it. Records
 * are written to all folders and read from any. A relative path is ignored (https://specifications.freedesktop.org/basedir-spec).
 */
export function trustFolders(env: Environment): string[] {
  const { XDG_CONFIG_HOME, APPDATA, HOME } = env
  const bases = [XDG_CONFIG_HOME, process.platform === 'win32' ? APPDATA : undefined, HOME && join(HOME, '.config')]
  const absolute = bases.filter((base): base is string => base !== undefined && isAbsolute(base))
  return [...new Set(absolute)].map((base) => join(base, 'agent-tasks', 'trusted'))
}

/** Whether the user trusts the file at this path with this content. Never throws. */
export function readTrust(path: string, sha256: string, env: Environment): TrustState {
  const states = trustFolders(env).map((folder) => stateOf(join(folder, recordName(path)), path, sha256))
  return (
    states.find(({ state }) => state === 'trusted') ??
    states.find(({ state }) => state !== 'unknown') ?? { state: 'unknown' }
  )
}

function stateOf(record: string, path: string, sha256: string): TrustState {
  const found = readFoundFile(record)
  if (found === undefined) return { state: 'unknown' }
  if ('problem' in found) return { state: 'damaged', record, problem: found.problem }
  const { uid, mode } = found.stats
  const own = process.getuid?.()
  if (own !== undefined && uid !== own && uid !== 0) {
    return { state: 'damaged', record, problem: `it belongs to another user (${uid})` }
  }
  if (own !== undefined && (mode & 0o022) !== 0) {
    return { state: 'damaged', record, problem: `other users can write it (mode ${modeText(mode)})` }
  }
  try {
    const known = recordSchema.parse(JSON.parse(found.bytes.toString('utf8')))
    if (known.path !== path) return { state: 'damaged', record, problem: 'it is the record of another path' }
    return { state: known.sha256 === sha256 ? 'trusted' : 'changed' }
  } catch {
    return { state: 'damaged', record, problem: 'its content is not a valid record' }
  }
}

/**
 * Records that the user trusts a file. Replaces an earlier record of the file.
 * @returns the paths of the records that were written
 * @throws INVALID_CONFIG when there is no folder, or none can be written
 */
export function writeTrust(path: string, sha256: string, env: Environment): string[] {
  const folders = trustFolders(env)
  if (folders.length === 0) {
    throw new ConfigFileError(
      path,
      'the trust in it cannot be recorded: neither XDG_CONFIG_HOME nor HOME is an absolute path.',
    )
  }
  const text = `${JSON.stringify({ path, sha256, trustedAt: new Date(systemClock.now()).toISOString() }, null, 2)}\n`
  const failures: unknown[] = []
  const written = folders.flatMap((folder) => {
    try {
      return [writeRecord(folder, recordName(path), text)]
    } catch (error) {
      failures.push(error)
      return []
    }
  })
  if (written.length > 0) return written
  const [cause] = failures
  const why = describeFailure(cause)
  throw new ConfigFileError(path, `the trust in it cannot be recorded: ${why}.`, { cause })
}

/** Writes a record and renames it into place. So a reader never finds half a record, and a link in its place is replaced, not followed. */
function writeRecord(folder: string, name: string, text: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  const [record, unfinished] = [join(folder, name), join(folder, `${name}.${randomUUID()}`)]
  try {
    writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx' })
    renameSync(unfinished, record)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
  return record
}

const recordName = (path: string): string => `${createHash('sha256').update(path).digest('hex').slice(0, 32)}.json`

/** The permission bits of a mode, as `chmod` takes them. */
export const modeText = (mode: number): string => (mode & 0o7777).toString(8)
