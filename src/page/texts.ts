/** Texts that are kept, and their size in memory. */
import { cutText } from '../text/cut-text.js'

/** The maximum length of a text in a row, in UTF-16 units. */
const ROW_CHARS = 200

/** Copies a text. V8 keeps a whole text in memory while a slice of it exists. */
export function ownText(text: string): string {
  const encoding = isNarrow(text) ? 'latin1' : 'utf16le'
  return Buffer.from(text, encoding).toString(encoding)
}

/** Copies the beginning of a text. */
export const beginningOf = (text: string, maxChars: number): string => ownText(cutText(text, maxChars))

/** Copies as much of a text as a row may contain. */
export const rowText = (text: string): string => beginningOf(text, ROW_CHARS)

/** The same length without a copy, for a text that is only sent. */
export const sentText = (text: string): string => cutText(text, ROW_CHARS)

/** Copies as much of a text as fits into this many bytes of memory. */
export function fittingText(text: string, maxBytes: number): string {
  const narrow = cutText(text, maxBytes)
  return ownText(isNarrow(narrow) ? narrow : cutText(text, Math.floor(maxBytes / 2)))
}

/** The size of a text in memory, in bytes. */
export const heldBytes = (text: string | undefined): number =>
  text === undefined ? 0 : isNarrow(text) ? text.length : 2 * text.length

/** V8 stores a text with one byte per character if all characters allow it. */
const isNarrow = (text: string): boolean => !/[^\0-\xff]/.test(text)
