/**
 * Reads and writes files for an agent, inside one folder. Symbolic links are resolved first, and their targets must be inside the folder. This does
 * not confine the agent itself: it is a program with all rights of the current user.
 */
import { constants, lstatSync, realpathSync } from 'node:fs'
import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, normalize } from 'node:path'
import { RequestError, type ReadTextFileRequest } from '@agentclientprotocol/sdk'
import { isWithin } from '../../system/regular-file.js'
import { preview } from '../../data/preview.js'

const { O_CREAT, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** These flags prevent two things: a FIFO cannot block this process, and a symbolic link that has just replaced the file is not followed. */
const SAFELY = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

const refuse = (reason: string): RequestError => RequestError.invalidParams(undefined, reason)

/**
 * Answers `fs/read_text_file`.
 * @throws RequestError for a path outside of the folder
 * @throws RequestError for a file that is larger than `maxBytes`, or for something other than a file
 */
export async function readTextFile(
  folder: string,
  { path, line, limit }: Pick<ReadTextFileRequest, 'path' | 'line' | 'limit'>,
  maxBytes: number,
): Promise<string> {
  const text = await withFile(locate(folder, path), path, O_RDONLY, async (file, size) => {
    if (size > maxBytes) throw refuse(`path: ${preview(path)} has ${size} bytes, expected at most ${maxBytes} bytes`)
    const bytes = new Uint8Array(size)
    const { bytesRead } = await file.read(bytes, 0, size, 0)
    return new TextDecoder().decode(bytes.subarray(0, bytesRead))
  })
  if ((line ?? undefined) === undefined && (limit ?? undefined) === undefined) return text
  const first = Math.max(0, (line ?? 1) - 1)
  return text
    .split(/(?<=\n)/)
    .slice(first, first + (limit ?? Infinity))
    .join('')
}

/**
 * Answers `fs/write_text_file`. Creates the file and its folders, or replaces the content of the file.
 * @throws RequestError for a path outside of the folder, or for something other than a file
 */
export async function writeTextFile(folder: string, path: string, content: string): Promise<void> {
  const target = locate(folder, path)
  await mkdir(dirname(target), { recursive: true }).catch(toRequestError(path))
  // The file is truncated only after `withFile` has checked that it is a file.
  await withFile(target, path, O_WRONLY | O_CREAT, async (file) => {
    await file.truncate(0)
    await file.writeFile(content)
  })
}

/**
 * Resolves the symbolic links of a path.
 * @throws RequestError for a relative path, or a path outside of the folder
 */
function locate(folder: string, path: string): string {
  if (!isAbsolute(path) || path.includes('\0')) throw refuse(`path: ${preview(path)}, expected an absolute path`)
  const root = realpathSync(folder)
  const target = realTarget(normalize(path))
  if (target !== undefined && isWithin(root, target)) return target
  throw refuse(`path: ${preview(path)}, expected a path inside ${root}`)
}

/** Resolves the symbolic links of a path whose last parts need not exist. Returns undefined for a link without a target. */
function realTarget(path: string): string | undefined {
  // `lstatSync` finds a link even if its target is missing. Such a path must not be treated as a file to create.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
    const parent = dirname(path)
    const real = parent === path ? undefined : realTarget(parent)
    return real === undefined ? undefined : join(real, basename(path))
  }
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

async function withFile<T>(
  target: string,
  path: string,
  flags: number,
  use: (file: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  const file = await open(target, flags | SAFELY, 0o666).catch(toRequestError(path))
  try {
    const status = await file.stat()
    if (!status.isFile()) throw refuse(`path: ${preview(path)}, expected a file`)
    return await use(file, status.size)
  } finally {
    await file.close()
  }
}

const toRequestError =
  (path: string) =>
  (error: unknown): never => {
    const { code = 'unknown', message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw RequestError.resourceNotFound(path)
    throw refuse(`path: ${preview(path)} cannot be opened (${code}): ${message}`)
  }
