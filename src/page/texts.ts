/** Cuts and copies texts, and measures their size in memory. */
import { cutText } from '../data/cut-text.js'

/** The maximum length of a text in a row of the page, in UTF-16 units. */
const ROW_CHARS = 200

/**
 * Copies a text, with one byte for each unit where that is possible, because `heldBytes` counts it so. Without the copy, V8 would keep the whole original in
 * memory while a slice of it is in use.
 */
export function ownText(text: string): string {
  const encoding = isNarrow(text) ? 'latin1' : 'utf16le'
  return Buffer.from(text, encoding).toString(encoding)
}

/** Copies the beginning of a text. */
export const beginningOf = (text: string, maxChars: number): string => ownText(cutText(text, maxChars))

/** Copies as much of a text as a row of the page may contain. */
export const rowText = (text: string): string => beginningOf(text, ROW_CHARS)

/** Cuts a text to the same length as `rowText`, without a copy, for a text that is sent and not kept. */
export const sentText = (text: string): string => cutText(text, ROW_CHARS)

/** Copies as much of a text as fits into `maxBytes` of memory. */
export function fittingText(text: string, maxBytes: number): string {
  const narrow = cutText(text, maxBytes)
  return ownText(isNarrow(narrow) ? narrow : cutText(text, Math.floor(maxBytes / 2)))
}

/** The size of a text in memory, in bytes. */
export const heldBytes = (text: string | undefined): number =>
  text === undefined ? 0 : isNarrow(text) ? text.length : 2 * text.length

/** Whether V8 stores the text with one byte per character, as it does when all characters are Latin-1. */
const isNarrow = (text: string): boolean => !/[^\0-\xff]/.test(text)
