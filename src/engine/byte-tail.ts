/** Keeps the last bytes of a stream. The cost of an append does not depend on the number of bytes that are kept. */
export class ByteTail {
  readonly #limit: number
  /** The bytes from `#offset` to `#end` of the stream. The buffer has up to twice the limit, so that it is seldom copied. */
  #buffer = new Uint8Array(0)
  #offset = 0
  #end = 0

  /** @param limit how many bytes to keep */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** The position in the stream of the first byte that is kept. All bytes before it were dropped. */
  get start(): number {
    return Math.max(this.#offset, this.#end - this.#limit)
  }

  /** The number of bytes appended so far. */
  get end(): number {
    return this.#end
  }

  /** The bytes that are kept. The array is valid until the next append. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(this.start - this.#offset, this.#end - this.#offset)
  }

  /** Appends a copy of the chunk. The caller may reuse the memory of the chunk. */
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

  /** Counts bytes of the stream that nobody can append. All bytes before them are dropped, so that the kept bytes have no gap. */
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
