/**
 * Reads a file that was found, not named by the user, such as a configuration file in a cloned repository. Such a file may be hostile. A named pipe, a
 * device or an endless file must not block the process, and the file must not change between its check and its use. So the file is opened and read once.
 */
import { closeSync, fstatSync, readSync, type Stats } from 'node:fs'
import { openAtOnce } from '../system/regular-file.js'

/** The maximum size of the file, in bytes (1 MiB). */
export const MAX_FOUND_BYTES = 1024 * 1024

export type FoundFile = { readonly bytes: Buffer; readonly stats: Stats } | { readonly problem: string }

/** @returns the content of the file, or why it cannot be used; undefined when there is no such file. Never throws */
export function readFoundFile(file: string): FoundFile | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openAtOnce(file, { followsLinks: true })
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) return { problem: 'it is not a regular file' }
    const bytes = readAtMost(descriptor, MAX_FOUND_BYTES + 1)
    if (bytes.length > MAX_FOUND_BYTES) return { problem: `it has more than ${MAX_FOUND_BYTES} bytes` }
    return { bytes, stats }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return code === 'ENOENT' ? undefined : { problem: `it cannot be read (${code})` }
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Reads at most `most` bytes. The size in the file's status is not trusted, because the file may be growing. */
function readAtMost(descriptor: number, most: number): Buffer {
  const chunks: Buffer[] = []
  let left = most
  while (left > 0) {
    const chunk = Buffer.alloc(Math.min(left, 65_536))
    const read = readSync(descriptor, chunk)
    if (read === 0) break
    chunks.push(chunk.subarray(0, read))
    left -= read
  }
  return Buffer.concat(chunks)
}
