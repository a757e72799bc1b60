/** The last bytes of a stream of any length. */

/** Keeps the end of a stream of bytes. Appending costs what is appended, however much is kept. */
export class ByteTail {
  readonly #limit: number
  /** The bytes from `#offset` to `#end` of the stream. It holds up to twice the limit, so that it is seldom copied. */
  #buffer = new Uint8Array(0)
  #offset = 0
  #end = 0

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** The position in the stream of the first byte that is kept: how many bytes were dropped. */
  get start(): number {
    return Math.max(this.#offset, this.#end - this.#limit)
  }

  /** How many bytes were appended. */
  get end(): number {
    return this.#end
  }

  /** The bytes that are kept; valid until the next append. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(this.start - this.#offset, this.#end - this.#offset)
  }

  /** Copies a chunk, so that its memory may be used again. */
  append(chunk: Uint8Array): void {
    const skipped = Math.max(0, chunk.length - this.#limit)
    if (skipped > 0) {
      this.#end += skipped
      this.#offset = this.#end
    }
    const rest = chunk.subarray(skipped)
    if (this.#end - this.#offset + rest.length > this.#buffer.length) this.#makeRoom(rest.length)
    this.#buffer.set(rest, this.#end - this.#offset)
    this.#end += rest.length
  }

  /** Bytes of the stream are missing: what came before them is dropped, too. */
  skip(bytes: number): void {
    this.#end += bytes
    this.#offset = this.#end
  }

  #makeRoom(needed: number): void {
    const { bytes, start } = this
    const buffer = new Uint8Array(Math.min(2 * this.#limit, Math.max(256, 2 * (bytes.length + needed))))
    buffer.set(bytes)
    this.#buffer = buffer
    this.#offset = start
  }
}

/** Whether a byte of UTF-8 continues a character. */
export const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
