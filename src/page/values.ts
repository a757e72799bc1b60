/** Reads the values of tasks as text: the beginning for the task's details, and the rest in pieces. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { jsonPieces, keysOf, PIECE_WORK } from '../data/json-pieces.js'
import { cutText, partsOf } from '../data/cut-text.js'
import type { CutValue, ValuePiece } from './wire.js'

/** How much of a value is converted before the event loop may do other work, in UTF-16 units. */
const TURN_WORK = 1024 * 1024

/** The server reads up to four times as much of a value as it sends, to find out how long the value is. */
const LOOK_AHEAD = 4

/** How far into a value its pieces reach, in bytes. The limit is needed because each request reads the value from its beginning. */
const MAX_READ = 8 * 1024 * 1024

/** The maximum length of text that is measured at once, in UTF-16 units. */
const SLICE = 64 * 1024

/** A value to show: plain data, or the copy of a value that the journal keeps. */
export interface ShownValue {
  readonly type: 'json' | 'text'
  readonly pieces: () => Iterable<string>
  /** Whether `pieces` returns only the beginning of the value, because the rest was not kept. */
  readonly isLost: boolean
}

export function shownValue(value: unknown): ShownValue {
  // An output whose only field is `final_message` is shown as that text.
  const text = typeof value === 'string' ? value : onlyMessage(value)
  if (text !== undefined) return { type: 'text', pieces: () => partsOf(text, SLICE), isLost: false }
  return { type: 'json', pieces: () => jsonPieces(value), isLost: false }
}

function onlyMessage(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { final_message: text } = value as { readonly final_message?: unknown }
  return typeof text === 'string' && keysOf(value).length === 1 ? text : undefined
}

interface Part {
  readonly bytes: Buffer
  /** The number of bytes that were read, including those before and after the part. */
  readonly read: number
  readonly hasMore: boolean
}

/** Reads `maxBytes` of a value from `offset` on. Text before and after this part is measured and not kept. Reading stops after `maxWork`. */
async function readPart({ pieces }: ShownValue, offset: number, maxBytes: number, maxWork: number): Promise<Part> {
  const parts: Buffer[] = []
  let [read, taken, work, sinceTurn] = [0, 0, 0, 0]
  for (const piece of pieces()) {
    if (work >= maxWork) return { bytes: Buffer.concat(parts), read, hasMore: true }
    const bytes = Buffer.byteLength(piece)
    if (read + bytes > offset && taken < maxBytes) {
      const from = Math.max(0, offset - read)
      const part = Buffer.from(piece).subarray(from, from + (maxBytes - taken))
      parts.push(part)
      taken += part.length
    }
    read += bytes
    work += Math.max(piece.length, PIECE_WORK)
    sinceTurn += Math.max(piece.length, PIECE_WORK)
    if (sinceTurn < TURN_WORK) continue
    sinceTurn = 0
    await nextTurn()
  }
  return { bytes: Buffer.concat(parts), read, hasMore: false }
}

export async function readBeginning(value: ShownValue, maxBytes: number): Promise<CutValue> {
  const { bytes, read, hasMore } = await readPart(value, 0, maxBytes, LOOK_AHEAD * maxBytes)
  const { text } = wholeCharacters(bytes)
  const isCut = value.isLost || hasMore || Buffer.byteLength(text) < read
  return { type: value.type, text, bytes: read, isCut, ...(hasMore && { hasMore }) }
}

/** Reads a piece of a value from a byte offset. If the offset is inside a character, the piece starts with the next character. */
export async function readPiece(value: ShownValue, from: number, maxBytes: number): Promise<ValuePiece> {
  const { bytes, read, hasMore } = await readPart(value, from, maxBytes, Math.min(from + 2 * maxBytes, MAX_READ))
  const { text, skipped } = wholeCharacters(bytes)
  const offset = Math.min(from + skipped, read)
  const isEnd = text === '' || (!hasMore && offset + Buffer.byteLength(text) >= read)
  return { text, offset, bytes: read, isEnd, ...(hasMore && { hasMore }) }
}

/** Decodes bytes, without incomplete characters at both ends. Also returns the number of bytes skipped at the beginning. */
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

/** The number of bytes of a character that begins with this byte. */
const lengthOf = (byte: number): number => (byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4)

/** Generates the whole text as bytes, so that the response can be written while the value is read. */
export async function* valueBytes({ pieces }: ShownValue): AsyncGenerator<Buffer, void> {
  let [text, sinceTurn] = ['', 0]
  for (const piece of pieces()) {
    text += piece
    sinceTurn += Math.max(piece.length, PIECE_WORK)
    if (sinceTurn >= TURN_WORK) {
      sinceTurn = 0
      await nextTurn()
    }
    if (text.length < SLICE) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

/** Whether the conversion of a value to JSON takes more work than `maxWork`. One character is one unit of work. */
export function isLongJson(value: unknown, maxWork: number): boolean {
  let work = 0
  for (const piece of jsonPieces(value)) {
    work += Math.max(piece.length, PIECE_WORK)
    if (work > maxWork) return true
  }
  return false
}

export const cutValue = (text: string, maxChars: number): CutValue => {
  const read = cutText(text, LOOK_AHEAD * maxChars)
  const shown = cutText(read, maxChars)
  const hasMore = read.length < text.length
  return {
    type: 'text',
    text: shown,
    bytes: Buffer.byteLength(read),
    isCut: shown.length < text.length,
    ...(hasMore && { hasMore }),
  }
}
