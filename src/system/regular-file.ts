/**
 * Reads files in folders to which programs can write. A program may have replaced a file: opening a FIFO would block this process, a device may never
 * end, and a link may lead to any file.
 */
import { nodeBuiltin } from './node-builtins.js'

/**
 * Opens a file for reading. Returns at once, even if the file is a FIFO without a writer. The caller must close the descriptor.
 * @throws the error of the file system
 */
export function openAtOnce(file: string, { followsLinks }: { readonly followsLinks: boolean }): number {
  const { constants, openSync } = nodeBuiltin('node:fs')
  // Windows has only the first of these constants. The others are undefined there and count as 0 below.
  const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants
  return openSync(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | (followsLinks ? 0 : O_NOFOLLOW))
}

/** Opens a regular file for reading. Returns undefined if it does not exist or cannot be opened. The caller must close the descriptor. */
export function openRegular(file: string): number | undefined {
  const { closeSync, fstatSync } = nodeBuiltin('node:fs')
  let descriptor: number
  try {
    descriptor = openAtOnce(file, { followsLinks: false })
  } catch {
    return undefined
  }
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  return undefined
}

/**
 * Returns the first or last bytes of a regular file as text; undefined if the file does not exist.
 * @param maxBytes the maximum number of bytes to read
 */
export function readRegular(file: string, maxBytes: number, from: 'start' | 'end' = 'start'): string | undefined {
  const { closeSync, fstatSync, readSync } = nodeBuiltin('node:fs')
  const descriptor = openRegular(file)
  if (descriptor === undefined) return undefined
  try {
    const { size } = fstatSync(descriptor)
    const bytes = new Uint8Array(Math.min(size, maxBytes))
    const read = readSync(descriptor, bytes, 0, bytes.length, from === 'start' ? 0 : size - bytes.length)
    return new TextDecoder().decode(bytes.subarray(0, read))
  } finally {
    closeSync(descriptor)
  }
}

/** Whether a path equals a folder or is inside it. Both must be real paths. */
export function isWithin(folder: string, file: string): boolean {
  const path = nodeBuiltin('node:path')
  const below = path.relative(folder, file)
  return below !== '..' && !below.startsWith(`..${path.sep}`) && !path.isAbsolute(below)
}
