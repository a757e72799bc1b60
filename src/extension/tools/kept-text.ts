/** Texts of pages that are stored. */
import { cutText } from '../../text/cut-text.js'

/** Indents the further lines of a text, which could otherwise imitate a part of the result. */
export const indented = (text: string): string => text.replace(/[\n\r\u0085\u2028\u2029]+/g, '\n    ')

/** Copies the first characters, because a substring keeps the whole text in memory. */
export const keptText = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : structuredClone(cutText(text, maxChars))
