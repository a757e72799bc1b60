/** The values of ended tasks: kept whole when they are small, and else their beginning. */
import { jsonPieces } from '../http/json-pieces.js'
import { jsonBytes } from '../protocol/json-size.js'
import { beginningOf, heldBytes } from './texts.js'

/** A value of a task. */
export type KeptValue =
  | { readonly type: 'whole'; readonly value: unknown }
  /** The beginning of its JSON, or of a text. */
  | { readonly type: 'cut'; readonly text: string; readonly isText: boolean }

/** What one task may still keep, in bytes. */
export class Allowance {
  #left: number
  readonly #most: number

  constructor(most: number) {
    this.#most = most
    this.#left = most
  }

  get used(): number {
    return this.#most - this.#left
  }

  /** Keeps a value, or as much of it as there is room for. */
  keep(value: unknown): KeptValue {
    const bytes = typeof value === 'string' ? heldBytes(value) : jsonBytes(value, this.#left)
    if (bytes <= this.#left) {
      this.#left -= bytes
      return { type: 'whole', value }
    }
    const text = this.#beginningOf(value)
    this.#left -= Math.min(this.#left, heldBytes(text))
    return { type: 'cut', text, isText: typeof value === 'string' }
  }

  /** Keeps a text, or its beginning. */
  keepText(text: string): string {
    const kept = beginningOf(text, Math.floor(this.#left / 2))
    this.#left -= Math.min(this.#left, heldBytes(kept))
    return kept
  }

  #beginningOf(value: unknown): string {
    const most = Math.floor(this.#left / 2)
    if (typeof value === 'string') return beginningOf(value, most)
    let text = ''
    for (const piece of jsonPieces(value)) {
      text += piece
      if (text.length >= most) break
    }
    return beginningOf(text, most)
  }
}
