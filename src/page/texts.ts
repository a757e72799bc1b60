/** Texts that are kept, and what they take. */
import { cutText } from '../text/cut-text.js'

/** The longest text in a row, in UTF-16 units. */
const ROW_CHARS = 200

/** A text of its own. V8 keeps the whole of a text as long as a slice of it lives. */
export function ownText(text: string): string {
  const encoding = isNarrow(text) ? 'latin1' : 'utf16le'
  return Buffer.from(text, encoding).toString(encoding)
}

/** A copy of the beginning of a text. */
export const beginningOf = (text: string, maxChars: number): string => ownText(cutText(text, maxChars))

/** The same, as long as a text in a row may be: for a text that is kept. */
export const rowText = (text: string): string => beginningOf(text, ROW_CHARS)

/** The same of a text that is only sent. */
export const sentText = (text: string): string => cutText(text, ROW_CHARS)

/** As much of a text as takes at most so many bytes in memory: a copy. */
export function fittingText(text: string, maxBytes: number): string {
  const narrow = cutText(text, maxBytes)
  return ownText(isNarrow(narrow) ? narrow : cutText(text, Math.floor(maxBytes / 2)))
}

/** What a text takes in memory, in bytes. */
export const heldBytes = (text: string | undefined): number =>
  text === undefined ? 0 : isNarrow(text) ? text.length : 2 * text.length

/** V8 keeps a text in one byte for each character if all of them fit into one. */
const isNarrow = (text: string): boolean => !/[^\0-\xff]/.test(text)
