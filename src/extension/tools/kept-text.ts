/** Texts of pages that are kept. */
import { cutText } from '../../text/cut-text.js'

/** A text whose further lines are indented: at the beginning of a line it could look like a part of the result. */
export const indented = (text: string): string => text.replace(/[\n\r\u0085\u2028\u2029]+/g, '\n    ')

/** The first characters, as a text of their own: a part of a text holds all of it in memory. */
export const keptText = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : structuredClone(cutText(text, maxChars))
