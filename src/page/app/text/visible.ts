/** Makes texts of tasks safe to show. Characters that could hide or reorder text are escaped as in JSON: `\u202e`. */
import { escapeControls } from '../../../data/control-characters.js'

/** Escapes a text for one line. */
export const visible = escapeControls

/** Escapes a text for several lines, and keeps line feeds and tabs. */
export function visibleLines(text: string): string {
  return text
    .split(/(\r\n|\n|\t)/)
    .map((part) => (part === '\r\n' ? '\n' : part === '\n' || part === '\t' ? part : escapeControls(part)))
    .join('')
}
