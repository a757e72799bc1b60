/**
 * The values of ended tasks, as copies of known size. Keeping a value itself would also keep the data that it shares, and the whole text from which a
 * slice was taken.
 */
import { jsonPieces, PIECE_WORK } from '../json/json-pieces.js'
import { fittingText, heldBytes } from './texts.js'
import { shownValue, type ShownValue } from './values.js'

/** A value of a task: its JSON, or a text. */
export interface KeptValue {
  readonly type: ShownValue['type']
  readonly text: string
  /** The text is only the beginning. */
  readonly isCut: boolean
}

/** How many fields that JSON does not know are passed over at most. */
const SPARE_WORK = 64 * 1024

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

  /** Keeps a value in its displayed form, or as much of it as fits. */
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

/** The value of its JSON; undefined when that is not whole. */
export const parsedKept = ({ type, text, isCut }: KeptValue): unknown =>
  isCut || type === 'text' ? undefined : (JSON.parse(text) as unknown)
