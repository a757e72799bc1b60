/**
 * Reads files in folders that programs can write to. Such a program may have put something else in place of a file: opening a FIFO would block this
 * process, a device may have no end, and a link may lead anywhere.
 */
import { nodeBuiltin } from './node-builtins.js'

/** Opens a regular file for reading. Undefined where there is none, or where it cannot be opened. The caller closes it. */
export function openRegular(file: string): number | undefined {
  const { closeSync, constants, fstatSync, openSync } = nodeBuiltin('node:fs')
  let descriptor: number
  try {
    const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants
    // Windows has neither of the last two: there they are undefined, and count as 0.
    descriptor = openSync(file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  } catch {
    return undefined
  }
  if (fstatSync(descriptor).isFile()) return descriptor
  closeSync(descriptor)
  return undefined
}

/**
 * The first or the last bytes of a regular file, as text; undefined where there is none.
 * @param maxBytes how much is read at most
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
