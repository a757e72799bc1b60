/**
 * Keeps the last bytes of a task's output. A cursor counts bytes from the beginning of the output. So a reader can continue where it stopped, and
 * learns how many bytes it has missed.
 */
import { TaskData } from '../../../machines/task-data.js'
import { ByteTail, isContinuation } from '../../engine/byte-tail.js'

/** A part of a task's output. */
export interface OutputChunk {
  /** The text. It starts and ends with whole characters. */
  readonly text: string
  /** The cursor after `text`, for the next call. */
  readonly nextCursor: number
  /** How many bytes after the given cursor are missing, because they are no longer kept. */
  readonly skippedBytes: number
  /** How many bytes after `text` can be read now. */
  readonly remainingBytes: number
}

/** Reads whole UTF-8 characters from `cursor` on. `bytes` are the part of the text that begins at byte `start`. */
export function readChunk(bytes: Uint8Array, start: number, cursor: number, maxBytes: number): OutputChunk {
  const end = start + bytes.length
  let from = Math.min(Math.max(cursor, start), end)
  while (isContinuation(bytes[from - start])) from += 1
  let to = Math.min(from + maxBytes, end)
  // `from` is the beginning of a character or the end, so the loop ends there at the latest.
  while (isContinuation(bytes[to - start])) to -= 1
  // Returns at least one character. Otherwise a reader with a small limit would never advance.
  if (to === from && from < end) {
    to += 1
    while (isContinuation(bytes[to - start])) to += 1
  }
  return {
    text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(from - start, to - start)),
    nextCursor: to,
    // A cursor inside a character that is kept skips its other bytes, and they are no loss.
    skippedBytes: cursor < start ? from - Math.max(0, cursor) : 0,
    remainingBytes: end - to,
  }
}

/** The end of a task's output, as much as is kept. */
export class OutputLog {
  readonly #tail: ByteTail

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#tail = new ByteTail(limit)
  }

  /** The number of bytes appended so far, including those that are no longer kept. */
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

export const outputLogs = new TaskData<OutputLog>()
