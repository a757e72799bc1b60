/**
 * Writes plain data as JSON text of limited length. The whole text could be longer than a string may be, because objects may occur many times in the
 * value. Words take the place of parts that are left out, and the text is still valid JSON. Texts with escape sequences are written as a terminal shows
 * them.
 */
import { cutText, lastChars } from './cut-text.js'
import { terminalText } from './terminal-text.js'

/** The default of `maxChars`. */
const MAX_JSON_CHARS = 10_000_000

/** An estimate of the characters around a value: quotes, a comma and a line break. */
const AROUND = 4

export interface JsonTextOptions {
  /** The number of spaces for each level of nesting. 0 (the default) for no line breaks. */
  readonly indent?: number
  /** The maximum length, in characters before escaping. What does not fit is left out. Default 10,000,000. */
  readonly maxChars?: number
  /** Whether each value leaves half of the remaining length for the values after it, and long texts show their beginning and end. Default false. */
  readonly isPreview?: boolean
}

/** Returns the JSON text of plain data (`toPlainData`). Never throws for plain data. */
export function toJsonText(value: unknown, options: JsonTextOptions = {}): string {
  const { indent = 0, maxChars = MAX_JSON_CHARS, isPreview = false } = options
  const shortened = shorten(value, { left: maxChars, indent, isPreview, depth: 1 })
  // `JSON.stringify` returns undefined for undefined, although its type says `string`.
  const text = JSON.stringify(shortened, null, indent) as string | undefined
  return text ?? ''
}

/** Estimates the length of the JSON text of plain data, in characters. It is fast, because it does not look into texts. */
export function estimateJsonChars(value: unknown, sizes = new Map<object, number>()): number {
  if (typeof value === 'string') return AROUND + value.length
  if (typeof value !== 'object' || value === null) return AROUND
  const known = sizes.get(value)
  if (known !== undefined) return known
  let size = AROUND
  if (Array.isArray(value)) for (const item of value) size += estimateJsonChars(item, sizes)
  else for (const [name, field] of Object.entries(value)) size += name.length + AROUND + estimateJsonChars(field, sizes)
  sizes.set(value, size)
  return size
}

interface Room {
  left: number
  readonly indent: number
  readonly isPreview: boolean
  depth: number
}

function shorten(value: unknown, room: Room): unknown {
  room.left -= AROUND + room.depth * room.indent
  if (typeof value === 'string') return shortenText(value, room)
  if (typeof value !== 'object' || value === null) return value
  const reserved = room.isPreview && room.depth > 1 ? Math.max(0, room.left / 2) : 0
  room.left -= reserved
  room.depth += 1
  const shortened = Array.isArray(value) ? shortenItems(value, room) : shortenFields(value, room)
  room.depth -= 1
  room.left += reserved
  return shortened
}

function shortenText(given: string, room: Room): string {
  const text = given.includes('\u001b') ? terminalText(given) : given
  if (room.isPreview) return previewText(text, room)
  const kept = cutText(text, Math.max(0, room.left))
  room.left -= text.length
  return kept.length === text.length ? text : `${kept}... [${text.length - kept.length} characters left out]`
}

/** Returns a text, or its beginning and end if it is longer than half of the room. The other half is left for the values after it. */
function previewText(text: string, room: Room): string {
  const size = Math.max(0, Math.floor(room.left / 2))
  if (text.length <= size) {
    room.left -= text.length
    return text
  }
  const head = cutText(text, Math.ceil(size / 2))
  const tail = lastChars(text, Math.floor(size / 2))
  room.left -= size
  return `${head}... [${text.length - head.length - tail.length} characters left out] ...${tail}`
}

function shortenItems(items: readonly unknown[], room: Room): unknown[] {
  const shown: unknown[] = []
  for (const item of items) {
    if (room.left <= 0) return [...shown, `[${items.length - shown.length} items left out]`]
    shown.push(shorten(item, room))
  }
  return shown
}

function shortenFields(fields: object, room: Room): object {
  const shown: [string, unknown][] = []
  const entries = Object.entries(fields)
  for (const [name, field] of entries) {
    if (room.left <= 0) {
      shown.push(['[left out]', `${entries.length - shown.length} fields`])
      break
    }
    room.left -= name.length + AROUND
    shown.push([name, shorten(field, room)])
  }
  // `Object.fromEntries` can define a field `__proto__`. An assignment would change the prototype instead.
  return Object.fromEntries(shown)
}
