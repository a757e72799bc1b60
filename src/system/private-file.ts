/**
 * Reads and writes files that contain a secret. Only the owner of such a file may be able to read it. Symbolic links are not followed. A file is
 * written as a whole, so that a reader never sees a part of it.
 */
import { InvalidInputError } from '../errors.js'
import { nodeBuiltin } from './node-builtins.js'
import { openAtOnce } from './regular-file.js'

/**
 * Returns the text of a file; undefined if the file does not exist. Reads at most `maxBytes + 1` bytes, so that the caller can detect a file that is
 * too long.
 * @param field the name of the setting with the path, for errors
 * @throws INVALID_INPUT for a file that other users can read, that cannot be read, or that is not a regular file
 */
export function readPrivate(file: string, field: string, maxBytes: number): string | undefined {
  const { closeSync, fstatSync, readSync } = nodeBuiltin('node:fs')
  const refuse = (expected: string): never => {
    throw new InvalidInputError(field, file, expected)
  }
  let descriptor: number
  try {
    descriptor = openAtOnce(file, { followsLinks: false })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'ELOOP' || code === 'EMLINK') return refuse('a file, not a symbolic link')
    return refuse(`a file that this process can read (${String(code)})`)
  }
  try {
    const stats = fstatSync(descriptor)
    const { mode, uid, size } = stats
    if (!stats.isFile()) return refuse('a regular file')
    const user = process.getuid?.()
    if (user !== undefined && uid !== user) return refuse('a file of the user that runs this process')
    if (user !== undefined && (mode & 0o077) !== 0) {
      return refuse('a file that only its owner can read and write (chmod 600)')
    }
    const bytes = new Uint8Array(Math.min(size, maxBytes + 1))
    const read = readSync(descriptor, bytes, 0, bytes.length, 0)
    return new TextDecoder().decode(bytes.subarray(0, read))
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Writes a file that only its owner can read. Creates the folder of the file if it does not exist. The text is written to a temporary file, which
 * then gets the name.
 * @param replaces whether an existing file is replaced. If not, the error `EEXIST` of the file system is thrown for it
 * @throws errors of the file system
 */
export function writePrivate(file: string, text: string, { replaces }: { readonly replaces: boolean }): void {
  const { linkSync, mkdirSync, renameSync, rmSync, writeFileSync } = nodeBuiltin('node:fs')
  mkdirSync(nodeBuiltin('node:path').dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}.${nodeBuiltin('node:crypto').randomBytes(6).toString('hex')}`
  try {
    // Flushed to the disk before the file gets its name. Otherwise the file could be empty after a power failure.
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
    if (replaces) renameSync(draft, file)
    else linkSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
}
