/**
 * The last bytes that a task has written. The cursor counts bytes from the beginning, so that a reader can continue where it stopped and knows how
 * many bytes were dropped in between.
 */
import { PerTask } from '../../../machines/per-task.js'
import { ByteTail, isContinuation } from '../../engine/byte-tail.js'

/** The default limit of a task's output, in bytes. */
export const DEFAULT_OUTPUT_BYTES = 64 * 1024

/** A part of a text. */
export interface OutputChunk {
  /** The text. It starts and ends with whole characters. */
  readonly text: string
  /** The position after `text`: the cursor for the next call. */
  readonly nextCursor: number
  /** The number of bytes between the given cursor and `text` that are no longer kept. */
  readonly skippedBytes: number
  /** The number of bytes after `text` that can be read now. */
  readonly remainingBytes: number
}

/** Reads whole UTF-8 characters from `cursor`. `bytes` begins at byte `start` of the text. */
export function readChunk(bytes: Uint8Array, start: number, cursor: number, maxBytes: number): OutputChunk {
  const end = start + bytes.length
  let from = Math.min(Math.max(cursor, start), end)
  while (isContinuation(bytes[from - start])) from += 1
  let to = Math.min(from + maxBytes, end)
  // Stops at `from` at the latest, which is the beginning of a character or the end.
  while (isContinuation(bytes[to - start])) to -= 1
  // Return at least one character, so that a reader with a small limit advances too.
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

/** The end of a task's output. */
export class OutputLog {
  readonly #tail: ByteTail

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#tail = new ByteTail(limit)
  }

  /** The number of bytes appended, including dropped ones. */
  get size(): number {
    return this.#tail.end
  }

  append(text: string): void {
    this.#tail.append(new TextEncoder().encode(text))
  }

  /** Reads at most `maxBytes` from `cursor`. Without a cursor it starts at the first byte that is kept. */
  read(cursor: number | undefined, maxBytes: number): OutputChunk {
    const { bytes, start } = this.#tail
    return readChunk(bytes, start, cursor ?? start, maxBytes)
  }

  /** The last bytes, at most `maxBytes`. */
  readEnd(maxBytes: number): string {
    return this.read(Math.max(0, this.size - maxBytes), maxBytes).text
  }
}

export const outputLogs = new PerTask<OutputLog>()
