/** The last bytes of what a program printed, whatever it printed before. */

/** The end of a text. */
export interface KeptText {
  /** It starts with a whole character. */
  readonly text: string
  /** How many bytes came before it. */
  readonly droppedBytes: number
}

/** Keeps the end of a stream of bytes. */
export interface ByteTail {
  push(chunk: Uint8Array): void
  /** What is kept, read as UTF-8. */
  read(): KeptText
  /** Whether there was more than is kept. */
  readonly hasDropped: boolean
}

/** @param limit how many bytes to keep */
export function createByteTail(limit: number): ByteTail {
  let buffer = Buffer.alloc(0)
  let used = 0
  let total = 0
  return {
    push: (chunk) => {
      total += chunk.length
      const bytes = chunk.subarray(Math.max(0, chunk.length - limit))
      if (used + bytes.length > buffer.length) {
        // Twice what is needed, so that the cost of a byte does not depend on how many are kept.
        const staying = buffer.subarray(Math.max(0, used + bytes.length - limit), used)
        const size = Math.min(2 * limit, Math.max(4096, 2 * (staying.length + bytes.length)))
        buffer = Buffer.concat([staying], size)
        used = staying.length
      }
      buffer.set(bytes, used)
      used += bytes.length
    },
    read: () => {
      let start = Math.max(0, used - limit)
      if (total > used - start) while (start < used && isContinuation(buffer[start])) start += 1
      return { text: new TextDecoder().decode(buffer.subarray(start, used)), droppedBytes: total - (used - start) }
    },
    get hasDropped() {
      return total > limit
    },
  }
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** The last `count` UTF-16 units of a text, fewer when that would split a surrogate pair. */
export function lastChars(text: string, count: number): string {
  return text.length <= count ? text : text.slice(-count).replace(/^[\uDC00-\uDFFF]/, '')
}
