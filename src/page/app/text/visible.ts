/** Makes texts of tasks safe to display: characters that could hide or reorder text are escaped as in JSON, `\u202e`. */
import { escapeControls } from '../../../text/control-characters.js'

/** For one line. */
export const visible = escapeControls

/** For several lines: line feeds and tabs are kept. */
export function visibleLines(text: string): string {
  return text
    .split(/(\r\n|\n|\t)/)
    .map((part) => (part === '\r\n' ? '\n' : part === '\n' || part === '\t' ? part : escapeControls(part)))
    .join('')
}
