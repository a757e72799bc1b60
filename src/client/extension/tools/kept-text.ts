/** Texts of a page that are stored, or shown to a model. */
import { cutText } from '../../../data/cut-text.js'
import { ownText } from '../../../data/own-text.js'

/** Indents all lines but the first. A text of the page could otherwise pass for a part of the tool's own result. */
export const indented = (text: string): string => text.replace(/[\n\r\u0085\u2028\u2029]+/g, '\n    ')

/** Cuts a text. The copy lets the rest be freed. */
export const keptText = (text: string, maxChars: number): string =>
  text.length <= maxChars ? text : ownText(cutText(text, maxChars))
