/**
 * Plain data as JSON text of limited length. A few shared strings can stand for gigabytes of text, more than a string can hold: the rest
 * is left out in words, and the text is still JSON.
 */
import { cutText } from '../preview.js'

/** The maximum for a text that is read in parts, in characters before they are escaped. */
const MAX_JSON_CHARS = 10_000_000

/** The characters around a value: quotes, a comma and a line break. */
const AROUND = 4

/** How a JSON text is written. */
export interface JsonTextOptions {
  /** The number of spaces for each level; 0 (default) for no line breaks. */
  readonly indent?: number
  /** Values after this many characters are left out. Default 10,000,000. */
  readonly maxChars?: number
}

/** The JSON text of plain data (`toPlainData`). Never throws for it. */
export function toJsonText(value: unknown, { indent = 0, maxChars = MAX_JSON_CHARS }: JsonTextOptions = {}): string {
  const shortened = shorten(value, { left: maxChars, indent, depth: 1 })
  // The result for undefined is undefined, despite its type.
  const text = JSON.stringify(shortened, null, indent) as string | undefined
  return text ?? ''
}

/** The room that is left for a text. */
interface Room {
  left: number
  readonly indent: number
  depth: number
}

function shorten(value: unknown, room: Room): unknown {
  room.left -= AROUND + room.depth * room.indent
  if (typeof value === 'string') return shortenText(value, room)
  if (typeof value !== 'object' || value === null) return value
  room.depth += 1
  const shortened = Array.isArray(value) ? shortenItems(value, room) : shortenFields(value, room)
  room.depth -= 1
  return shortened
}

function shortenText(text: string, room: Room): string {
  const kept = cutText(text, Math.max(0, room.left))
  room.left -= text.length
  return kept.length === text.length ? text : `${kept}... [${text.length - kept.length} characters left out]`
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
  // Defines the fields: assigning to `__proto__` would not.
  return Object.fromEntries(shown)
}
