/** Small values of many owners, such as conversations, bounded in number and bytes. */
import { ownText } from '../data/own-text.js'

/** The maximum number of owners in a table, and the maximum total size of their names and values, in bytes. */
export const MAX_OWNERS = { owners: 100_000, bytes: 32 * 1024 * 1024 } as const

/** The approximate size of a value and its place in the table, in bytes. */
const VALUE_BYTES = 200

const bytesOf = (owner: string): number => VALUE_BYTES + 2 * owner.length

export class OwnerTable<Value> {
  readonly #values = new Map<string, Value>()
  readonly #max: { readonly owners: number; readonly bytes: number }
  #bytes = 0

  constructor(max: { readonly owners: number; readonly bytes: number } = MAX_OWNERS) {
    this.#max = max
  }

  get size(): number {
    return this.#values.size
  }

  get(owner: string): Value | undefined {
    return this.#values.get(owner)
  }

  has(owner: string): boolean {
    return this.#values.has(owner)
  }

  /**
   * Sets the value of an owner.
   * @returns the owners that were dropped because the table is full: those that were set longest ago
   */
  set(owner: string, value: Value): readonly string[] {
    if (this.#values.delete(owner)) {
      this.#values.set(owner, value)
      return NONE
    }
    this.#bytes += bytesOf(owner)
    this.#values.set(ownText(owner), value)
    if (this.size <= this.#max.owners && this.#bytes <= this.#max.bytes) return NONE
    const dropped: string[] = []
    for (const oldest of this.#values.keys()) {
      if (this.size <= this.#max.owners && this.#bytes <= this.#max.bytes) break
      this.delete(oldest)
      dropped.push(oldest)
    }
    return dropped
  }

  delete(owner: string): boolean {
    if (!this.#values.delete(owner)) return false
    this.#bytes -= bytesOf(owner)
    return true
  }
}

const NONE: readonly string[] = []
