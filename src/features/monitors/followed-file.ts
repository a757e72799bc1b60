/**
 * Follows a growing file that may be truncated, or replaced by a new file of the same name (rotated). The rest of a replaced file is read before the
 * new file. If a file is replaced several times between two checks, only the last new file is read. Only regular files within the allowed real paths
 * are read.
 */
import { InvalidInputError } from '../../errors.js'
import { nodeBuiltin, nodePlatform } from '../../system/node-builtins.js'
import { isWithin, openRegular } from '../../system/regular-file.js'
import type { Monitored, OnText, Position } from './monitor.js'

/** How many bytes are read at once, how many of an existing file are read, and how many are compared to detect a rewritten file. */
const [CHUNK, KEPT, COMPARED] = [16_384, 65_536, 64] as const

/** How long one check may read, and how long the file may be missing before the monitor ends; in ms. */
const [LOOK_MS, GONE_MS] = [20, 5000] as const

export class FollowedFile implements Monitored {
  readonly path: string
  readonly #roots: readonly string[]
  at: Position
  isBehind = false
  #descriptor: number | undefined
  #offset = 0
  #last: Uint8Array = new Uint8Array()
  #decoder = new TextDecoder()
  #refusedSince: number | undefined

  /**
   * @param from where an earlier process stopped reading
   * @throws INVALID_INPUT for a file that does not exist or may not be read. With `from`, `look` reports that instead
   */
  constructor(file: string, roots: readonly string[], from?: Position) {
    const path = nodeBuiltin('node:path')
    this.#roots = roots.map((root) => path.resolve(root))
    this.path = path.resolve(this.#roots[0] ?? '.', file)
    this.at = from ?? { position: 0 }
    const refusal = this.#open(from)
    if (refusal !== undefined && from === undefined) throw new InvalidInputError('input.file', file, refusal)
  }

  look(now: () => number, onText: OnText): string | undefined {
    const began = now()
    // Looks up the inode of the path before it reads the old file. Once the path leads to a new file, nothing is written to the old one any more.
    const inode = nodeBuiltin('node:fs').statSync(this.path, { bigint: true, throwIfNoEntry: false })?.ino.toString()
    const descriptor = this.#descriptor
    if (descriptor !== undefined) {
      if (this.#wasRewritten(descriptor)) this.#begin(0, onText)
      this.isBehind = true
      while (this.#read(descriptor, onText)) if (now() - began >= LOOK_MS) return undefined
      this.isBehind = false
    }
    const isSame = descriptor !== undefined && inode === this.at.inode
    const refusal = isSame ? undefined : inode === undefined ? 'a file that exists' : this.#reopen(onText)
    this.#refusedSince = refusal === undefined ? undefined : (this.#refusedSince ?? began)
    return began - (this.#refusedSince ?? began) >= GONE_MS
      ? `its file can no longer be read: expected ${refusal}`
      : undefined
  }

  close(): void {
    if (this.#descriptor !== undefined) nodeBuiltin('node:fs').closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #reopen(onText: OnText): string | undefined {
    if (this.#descriptor !== undefined) onText('\n', this.at)
    this.close()
    return this.#open(this.at)
  }

  /** @returns undefined if the file may be read. Otherwise what was expected, in words */
  #open(from: Position | undefined): string | undefined {
    const real = realOf(this.path)
    // Outside the allowed paths, a missing file gets the same error as an existing one, so that the error does not reveal which files exist.
    if (!this.#isAllowed(real ?? this.path)) return this.#allowedText()
    this.#descriptor = real === undefined ? undefined : openRegular(real)
    if (this.#descriptor === undefined) return 'a regular file that can be read'
    // Between the first check and the opening, one of the folders may have been replaced by a link that leads elsewhere.
    if (!this.#isAllowed(pathOf(this.#descriptor, this.path))) {
      this.close()
      return this.#allowedText()
    }
    const { ino, size } = nodeBuiltin('node:fs').fstatSync(this.#descriptor, { bigint: true })
    const isSame = from?.inode === String(ino) && Number(size) >= from.position
    this.at = { position: 0, inode: String(ino) }
    this.#begin(from === undefined ? Math.max(0, Number(size) - KEPT) : isSame ? from.position : 0)
    return undefined
  }

  #isAllowed(path: string | undefined): boolean {
    return path !== undefined && this.#roots.some((root) => isWithin(realOf(root) ?? root, path))
  }

  #allowedText(): string {
    return `a file within monitors.files (${JSON.stringify(this.#roots).slice(1, -1) || 'none'})`
  }

  #begin(offset: number, onText?: OnText): void {
    this.at = { ...this.at, position: offset }
    onText?.('\n', this.at)
    this.#offset = offset
    this.#last = new Uint8Array()
    this.#decoder = new TextDecoder()
  }

  /** Whether the file was rewritten: it is shorter than before, or the last bytes that were read have changed. */
  #wasRewritten(descriptor: number): boolean {
    const { length } = this.#last
    const present = new Uint8Array(length)
    const count = nodeBuiltin('node:fs').readSync(descriptor, present, 0, length, this.#offset - length)
    return count < length || present.some((byte, index) => byte !== this.#last[index])
  }

  #read(descriptor: number, onText: OnText): boolean {
    const bytes = new Uint8Array(CHUNK)
    const count = nodeBuiltin('node:fs').readSync(descriptor, bytes, 0, CHUNK, this.#offset)
    if (count === 0) return false
    const chunk = bytes.subarray(0, count)
    const lineEnd = chunk.lastIndexOf(0x0a)
    if (lineEnd !== -1) this.at = { ...this.at, position: this.#offset + lineEnd + 1 }
    this.#offset += count
    this.#last = chunk.slice(-COMPARED)
    onText(this.#decoder.decode(chunk, { stream: true }), this.at)
    return true
  }
}

/**
 * Returns the real path of an open file. Linux knows it from the descriptor. On other systems it is returned only if `path` still leads to the open
 * file.
 */
function pathOf(descriptor: number, path: string): string | undefined {
  const { fstatSync, readlinkSync, statSync } = nodeBuiltin('node:fs')
  if (nodePlatform === 'linux') {
    // Linux appends " (deleted)" to the name of a file that was removed or replaced.
    return readlinkSync(`/proc/self/fd/${descriptor}`).replace(/ \(deleted\)$/, '')
  }
  const real = realOf(path)
  const present = real === undefined ? undefined : statSync(real, { bigint: true, throwIfNoEntry: false })
  const { dev, ino } = fstatSync(descriptor, { bigint: true })
  return present?.dev === dev && present.ino === ino ? real : undefined
}

function realOf(path: string): string | undefined {
  try {
    return nodeBuiltin('node:fs').realpathSync(path)
  } catch {
    return undefined
  }
}
