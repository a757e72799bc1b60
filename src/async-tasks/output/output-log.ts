/**
 * The last bytes that a task wrote. The cursor counts bytes from the task's first one, so that a reader can continue where it
 * stopped, and learns how many bytes were dropped meanwhile.
 */
import { PerTask } from '../../../machines/per-task.js'
import { ByteTail, isContinuation } from '../../engine/byte-tail.js'

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

/** Reads whole characters of UTF-8 from `cursor` on; `bytes` starts at byte `start` of the text. */
export function readChunk(bytes: Uint8Array, start: number, cursor: number, maxBytes: number): OutputChunk {
  const end = start + bytes.length
  let from = Math.min(Math.max(cursor, start), end)
  while (isContinuation(bytes[from - start])) from += 1
  let to = Math.min(from + maxBytes, end)
  // It ends at `from` at the latest: there begins a character, or nothing follows.
  while (isContinuation(bytes[to - start])) to -= 1
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

/** The output of a task, of which the end is kept. */
export class OutputLog {
  readonly #tail: ByteTail

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#tail = new ByteTail(limit)
  }

  /** The number of bytes appended so far, kept or not. */
  get size(): number {
    return this.#tail.end
  }

  append(text: string): void {
    this.#tail.append(new TextEncoder().encode(text))
  }

  /** Reads at most `maxBytes` from `cursor` on; without a cursor, from the first byte that is kept. */
  read(cursor: number | undefined, maxBytes: number): OutputChunk {
    const { bytes, start } = this.#tail
    return readChunk(bytes, start, cursor ?? start, maxBytes)
  }

  /** The end, of at most `maxBytes`. */
  readEnd(maxBytes: number): string {
    return this.read(Math.max(0, this.size - maxBytes), maxBytes).text
  }
}

/** What a task has written. */
export const outputLogs = new PerTask<OutputLog>()
