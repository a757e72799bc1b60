/**
 * The last bytes that a task wrote, with a cursor that counts bytes from the start of the task, so that a reader that
 * comes back misses nothing that is still kept and is told what is not.
 */
import { ByteTail, isContinuation } from '../engine/byte-tail.js'

/** How much of a task's output is kept, in bytes (64 KiB). */
export const DEFAULT_OUTPUT_BYTES = 64 * 1024

/** A part of a text. */
export interface OutputChunk {
  /** The text, cut at whole characters. */
  readonly text: string
  /** The byte after the last one of `text`: pass it as the next cursor. */
  readonly nextCursor: number
  /** Bytes between the asked cursor and the start of `text` that are no longer kept. */
  readonly skippedBytes: number
  /** Bytes after `nextCursor` that can be read now. */
  readonly remainingBytes: number
}

/** Reads whole characters of UTF-8 `bytes` (which start at byte `start` of the text) from `cursor` on. */
export function readChunk(bytes: Uint8Array, start: number, cursor: number, maxBytes: number): OutputChunk {
  const end = start + bytes.length
  let from = Math.min(Math.max(cursor, start), end)
  while (isContinuation(bytes[from - start])) from += 1
  let to = Math.min(from + maxBytes, end)
  while (to > from && to < end && isContinuation(bytes[to - start])) to -= 1
  // One character must fit, or a reader with a tiny limit would never advance.
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

/** The output of a task, of which the end is kept. */
export class OutputLog {
  readonly #tail: ByteTail

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#tail = new ByteTail(limit)
  }

  /** Bytes appended so far, kept or not. */
  get size(): number {
    return this.#tail.end
  }

  append(text: string): void {
    this.#tail.append(new TextEncoder().encode(text))
  }

  /** Reads from `cursor` (in bytes; the start of what is kept when absent) at most `maxBytes`. */
  read(cursor: number | undefined, maxBytes: number): OutputChunk {
    const { bytes, start } = this.#tail
    return readChunk(bytes, start, cursor ?? start, maxBytes)
  }
}
