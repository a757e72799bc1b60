/** Parts of texts that do not keep the whole of them in memory. */
import { cutText } from '../preview.js'

/** The longest text in a row, in UTF-16 units. */
const ROW_CHARS = 200

/** The beginning of a text. V8 keeps the whole of a text as long as a slice of it lives: this is a copy. */
export function beginningOf(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return Buffer.from(cutText(text, maxChars), 'utf16le').toString('utf16le')
}

/** The same, as long as a text in a row may be. */
export const rowText = (text: string): string => beginningOf(text, ROW_CHARS)

/** What a text takes in memory, at most, in bytes. */
export const heldBytes = (text: string | undefined): number => (text === undefined ? 0 : 2 * text.length)
