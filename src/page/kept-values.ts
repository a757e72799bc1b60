/**
 * The values of ended tasks, as copies of known size. Keeping the original would also keep alive the data that it shares, and the whole text from which
 * it is a slice.
 */
import { jsonPieces, PIECE_WORK } from '../json/json-pieces.js'
import { fittingText, heldBytes } from './texts.js'
import { shownValue, type ShownValue } from './values.js'

/** A value of a task, as JSON or text. */
export interface KeptValue {
  readonly type: ShownValue['type']
  readonly text: string
  /** Whether the text is only the beginning of the value. */
  readonly isCut: boolean
}

/** The maximum number of fields without a JSON form, such as functions, that are skipped. */
const SPARE_WORK = 64 * 1024

/** The bytes that one task may still use. */
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

  /** Keeps a value in its displayed form, cut to the bytes that are left. */
  keep(value: unknown, most = Infinity): KeptValue {
    return this.#keep(shownValue(value), most)
  }

  /** Keeps the JSON of a value. */
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

/** Parses the JSON of a value; undefined if it was cut. */
export const parsedKept = ({ type, text, isCut }: KeptValue): unknown =>
  isCut || type === 'text' ? undefined : (JSON.parse(text) as unknown)
