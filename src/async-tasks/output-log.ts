/**
 * The last bytes that a task wrote. The cursor counts bytes from the task's first one, so that a reader can continue where it
 * stopped, and learns how many bytes were dropped meanwhile.
 */

/** How much of a task's output is kept by default, in bytes (64 KiB). */
export const DEFAULT_OUTPUT_BYTES = 64 * 1024

/** A part of a text. */
export interface OutputChunk {
  /** The text; it starts and ends at whole characters. */
  readonly text: string
  /** The position after the last byte of `text`: the cursor for the next call. */
  readonly nextCursor: number
  /** The number of bytes between the given cursor and the start of `text`, which are no longer kept. */
  readonly skippedBytes: number
  /** The number of bytes after `nextCursor` that can be read now. */
  readonly remainingBytes: number
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Reads whole characters of UTF-8 from `cursor` on; `bytes` starts at byte `start` of the text. */
export function readChunk(bytes: Uint8Array, start: number, cursor: number, maxBytes: number): OutputChunk {
  const end = start + bytes.length
  let from = Math.min(Math.max(cursor, start), end)
  while (isContinuation(bytes[from - start])) from += 1
  let to = Math.min(from + maxBytes, end)
  while (to > from && to < end && isContinuation(bytes[to - start])) to -= 1
  // Return at least one character: a reader with a small limit must advance too.
  if (to === from && from < end) {
    to += 1
    while (isContinuation(bytes[to - start])) to += 1
  }
  return {
    text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(from - start, to - start)),
    nextCursor: to,
    skippedBytes: Math.max(0, from - Math.max(0, Math.min(cursor, end))),
    remainingBytes: end - to,
  }
}

/** A text of which the last `limit` bytes are kept. */
export class OutputLog {
  readonly #limit: number
  /** Holds bytes `#start` to `#end` of the text; compacted only when full, so that the cost of appending does not grow with the log. */
  #buffer = new Uint8Array(0)
  #start = 0
  #end = 0

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** The number of bytes appended so far, kept or not. */
  get size(): number {
    return this.#end
  }

  append(text: string): void {
    const all = new TextEncoder().encode(text)
    const bytes = all.length > this.#limit ? all.subarray(all.length - this.#limit) : all
    if (bytes.length < all.length) {
      this.#end += all.length - bytes.length
      this.#start = this.#end
    }
    if (this.#end - this.#start + bytes.length > this.#buffer.length) this.#makeRoom(bytes.length)
    this.#buffer.set(bytes, this.#end - this.#start)
    this.#end += bytes.length
  }

  /** Reads at most `maxBytes` from `cursor` on; without a cursor, from the first byte that is kept. */
  read(cursor: number | undefined, maxBytes: number): OutputChunk {
    const start = Math.max(this.#start, this.#end - this.#limit)
    const kept = this.#buffer.subarray(start - this.#start, this.#end - this.#start)
    return readChunk(kept, start, cursor ?? start, maxBytes)
  }

  #makeRoom(needed: number): void {
    const start = Math.max(this.#start, this.#end - this.#limit)
    const kept = this.#buffer.slice(start - this.#start, this.#end - this.#start)
    this.#buffer = new Uint8Array(Math.min(2 * this.#limit, Math.max(256, 2 * (kept.length + needed))))
    this.#buffer.set(kept)
    this.#start = start
  }
}
