/** The values of tasks as texts: their beginning at once, and the rest in pieces. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { jsonPieces } from '../http/json-pieces.js'
import { beginningOf } from './texts.js'
import type { KeptValue } from './kept-values.js'
import type { CutValue, ValuePiece } from './wire.js'

/** How much of a value is written before others have their turn, in UTF-16 units. */
const TURN_CHARS = 1024 * 1024

/** The longest piece of a text that is measured at once. */
const SLICE = 64 * 1024

/** A value to show: plain data, or what is kept of it. */
export interface ShownValue {
  readonly type: 'json' | 'text'
  /** Its text, in pieces. */
  readonly pieces: () => Iterable<string>
  /** It is the beginning of a value that is no longer kept. */
  readonly isLost: boolean
}

export function shownValue(value: unknown): ShownValue {
  // An output that is one text is shown as the text.
  const text = typeof value === 'string' ? value : onlyMessage(value)
  if (text !== undefined) return { type: 'text', pieces: () => textPieces(text), isLost: false }
  return { type: 'json', pieces: () => jsonPieces(value), isLost: false }
}

export function shownKept(kept: KeptValue): ShownValue {
  if (kept.type === 'whole') return shownValue(kept.value)
  return { type: kept.isText ? 'text' : 'json', pieces: () => [kept.text], isLost: true }
}

function onlyMessage(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const [[name, text] = [], ...more] = Object.entries(value)
  return name === 'final_message' && typeof text === 'string' && more.length === 0 ? text : undefined
}

function* textPieces(text: string): Generator<string, void> {
  for (let from = 0; from < text.length;) {
    // A surrogate pair is not cut in two.
    const last = text.charCodeAt(from + SLICE - 1)
    const to = from + SLICE + (last >= 0xd800 && last <= 0xdbff ? 1 : 0)
    yield text.slice(from, to)
    from = to
  }
}

/** A part of a value, and how much there is. */
interface Part {
  readonly bytes: Buffer
  /** Of the whole. */
  readonly total: number
}

/** Reads a part of a value. It is not written as a whole: what is before the part is passed, and what is after it is measured, piece by piece. */
async function readPart({ pieces }: ShownValue, offset: number, maxBytes: number): Promise<Part> {
  const parts: Buffer[] = []
  let [at, taken, sinceTurn] = [0, 0, 0]
  for (const piece of pieces()) {
    const bytes = Buffer.byteLength(piece)
    if (at + bytes > offset && taken < maxBytes) {
      const from = Math.max(0, offset - at)
      const part = Buffer.from(piece).subarray(from, from + (maxBytes - taken))
      parts.push(part)
      taken += part.length
    }
    at += bytes
    sinceTurn += piece.length
    if (sinceTurn < TURN_CHARS) continue
    sinceTurn = 0
    await nextTurn()
  }
  return { bytes: Buffer.concat(parts), total: at }
}

/** The beginning of a value. */
export async function readBeginning(value: ShownValue, maxBytes: number): Promise<CutValue> {
  const { bytes, total } = await readPart(value, 0, maxBytes)
  const { text } = wholeCharacters(bytes)
  return { type: value.type, text, bytes: total, isCut: value.isLost || Buffer.byteLength(text) < total }
}

/** A piece of a value, from an offset in bytes on; in the middle of a character, from the next one on. */
export async function readPiece(value: ShownValue, from: number, maxBytes: number): Promise<ValuePiece> {
  const { bytes, total } = await readPart(value, from, maxBytes)
  const { text, skipped } = wholeCharacters(bytes)
  const offset = Math.min(from + skipped, total)
  return { text, offset, bytes: total, isEnd: offset + Buffer.byteLength(text) >= total }
}

/** The text of bytes without the characters that they cut, and how many bytes that are at the beginning. */
function wholeCharacters(bytes: Buffer): { readonly text: string; readonly skipped: number } {
  let from = 0
  while (from < bytes.length && isContinuation(bytes[from])) from += 1
  let to = bytes.length
  let lead = to - 1
  while (lead >= from && isContinuation(bytes[lead])) lead -= 1
  if (lead >= from && lead + lengthOf(bytes[lead] ?? 0) > to) to = lead
  return { text: bytes.toString('utf8', from, to), skipped: from }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The bytes of a character that begins with this one. */
const lengthOf = (byte: number): number => (byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4)

/** The whole text as bytes, for an answer that is written as fast as it is read. */
export function* valueBytes({ pieces }: ShownValue): Generator<Buffer, void> {
  let text = ''
  for (const piece of pieces()) {
    text += piece
    if (text.length < SLICE) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

/** A short text as a value. */
export const cutValue = (text: string, maxChars: number): CutValue => {
  const shown = beginningOf(text, maxChars)
  return { type: 'text', text: shown, bytes: Buffer.byteLength(text), isCut: shown.length < text.length }
}
