/**
 * Copies of the values of ended tasks, whose size in memory is known. An original value would keep more in memory: data that it shares with other
 * values, and the whole texts behind the slices that it contains.
 */
import { jsonPieces, PIECE_WORK } from '../data/json-pieces.js'
import { fittingText, heldBytes } from './texts.js'
import { shownValue, type ShownValue } from './values.js'

/** A value of a task, as JSON or text. */
export interface KeptValue {
  readonly type: ShownValue['type']
  readonly text: string
  /** Whether the text is only the beginning of the value. */
  readonly isCut: boolean
}

/** The extra work that is allowed for parts that become no text, such as fields with functions. One character is one unit of work. */
const SPARE_WORK = 64 * 1024

/** The bytes of memory that the values of one task may still use. */
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

  /**
   * Keeps a value in the form in which the page shows it, cut to the bytes that are left.
   * @param most the maximum size of this value, in bytes
   */
  keep(value: unknown, most = Infinity): KeptValue {
    return this.#keep(shownValue(value), most)
  }

  keepJson(value: unknown, most = Infinity): KeptValue {
    return this.#keep({ type: 'json', pieces: () => jsonPieces(value) }, most)
  }

  #keep({ type, pieces }: Pick<ShownValue, 'type' | 'pieces'>, most: number): KeptValue {
    const room = Math.floor(Math.min(most, this.#left))
    let [text, work, isWhole] = ['', 0, true]
    for (const piece of pieces()) {
      text += piece
      work += Math.max(piece.length, PIECE_WORK)
      if (text.length <= room && work <= room + SPARE_WORK) continue
      isWhole = false
      break
    }
    const kept = fittingText(text, room)
    this.#left -= heldBytes(kept)
    return { type, text: kept, isCut: !isWhole || kept.length < text.length }
  }
}

export const shownKept = ({ type, text, isCut }: KeptValue): ShownValue => ({
  type,
  pieces: () => [text],
  isLost: isCut,
})

/** Parses the JSON of a value. Returns undefined for a value that was cut, and for a text. */
export const parsedKept = ({ type, text, isCut }: KeptValue): unknown =>
  isCut || type === 'text' ? undefined : (JSON.parse(text) as unknown)
