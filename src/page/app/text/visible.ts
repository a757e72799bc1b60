/** Texts of tasks on the page: characters that could hide or reorder others are shown as in JSON, `\u202e`. */
import { escapeControls } from '../../../text/control-characters.js'

/** One line. */
export const visible = escapeControls

/** Lines: line feeds and tabs stay. */
export function visibleLines(text: string): string {
  return text
    .split(/(\r\n|\n|\t)/)
    .map((part) => (part === '\r\n' ? '\n' : part === '\n' || part === '\t' ? part : escapeControls(part)))
    .join('')
}
