/** Texts of pages that are kept. */
import { cutText } from '../../preview.js'

/** The first characters, as a text of their own: a part of a text holds all of it in memory. */
export const keptText = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : structuredClone(cutText(text, maxChars))
