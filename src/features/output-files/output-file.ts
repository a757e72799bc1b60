/** The file with the output of one task. Writes are synchronous, so the file has the output in order, and all of it when the task ends. */
import { isContinuation } from '../../engine/byte-tail.js'
import { nodeBuiltin } from '../../system/node-builtins.js'

export class OutputFile {
  readonly path: string
  readonly #maxBytes: number
  #descriptor: number | undefined
  #size = 0
  #leftOut = 0
  #error: Error | undefined
  #restarts: boolean

  /**
   * @param maxBytes how much output the file may have, in bytes. Lines about what is left out come in addition
   * @param restarts whether the first `append` empties the file
   */
  constructor(path: string, maxBytes: number, restarts: boolean) {
    this.path = path
    this.#maxBytes = maxBytes
    this.#restarts = restarts
  }

  /** Whether the file exists and can be appended to. */
  get isOpen(): boolean {
    return this.#descriptor !== undefined
  }

  /** The error after which nothing more is written. */
  get error(): Error | undefined {
    return this.#error
  }

  append(text: string): void {
    const bytes = new TextEncoder().encode(text)
    // After a gap nothing more is written, also if it would fit.
    const isCut = this.#leftOut > 0 || this.#error !== undefined
    this.#leftOut += bytes.length
    if (!isCut) this.#attempt(() => this.#write(bytes))
  }

  /** Closes the file. If output was left out, its last line says how much. */
  close(): void {
    const descriptor = this.#descriptor
    if (descriptor === undefined) return
    const { appendFileSync, closeSync } = nodeBuiltin('node:fs')
    const reason = this.#error?.message ?? `the limit is ${this.#maxBytes} bytes (outputFiles.maxBytes)`
    const line = `\n[${this.#leftOut} bytes of output are left out here: ${reason}]\n`
    if (this.#leftOut > 0) this.#attempt(() => appendFileSync(descriptor, line))
    this.#leftOut = 0
    this.#descriptor = undefined
    this.#attempt(() => closeSync(descriptor))
  }

  #write(bytes: Uint8Array): void {
    const descriptor = this.#descriptor ?? this.#open()
    let count = Math.max(0, Math.min(bytes.length, this.#maxBytes - this.#size))
    while (isContinuation(bytes[count])) count -= 1
    nodeBuiltin('node:fs').appendFileSync(descriptor, bytes.subarray(0, count))
    this.#size += count
    this.#leftOut -= count
  }

  #open(): number {
    const { constants, fstatSync, openSync } = nodeBuiltin('node:fs')
    // Windows has no O_NOFOLLOW. It is undefined there and counts as 0.
    const { O_APPEND, O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants
    const flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | (this.#restarts ? O_TRUNC : 0)
    const descriptor = openSync(this.path, flags, 0o600)
    this.#restarts = false
    this.#descriptor = descriptor
    this.#size = fstatSync(descriptor).size
    return descriptor
  }

  #attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      const { message } = error as Error
      this.#error ??= new Error(`The output could not be written to ${this.path}: ${message}`, { cause: error })
    }
  }
}
