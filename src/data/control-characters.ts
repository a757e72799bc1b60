/**
 * Makes external texts (names, ids, errors, output of tools) safe for a terminal or log. A terminal obeys control characters, which can erase the
 * screen, set its title or the clipboard, and forge lines. Bidirectional controls reorder the visible text.
 */

// The control characters C0, DEL and C1, the line separators, and the marks, embeddings, overrides and isolates of
// https://www.unicode.org/reports/tr9/
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
// eslint-disable-next-line no-control-regex
const RUNS_OF_CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g

/** Makes one line of a text: each sequence of control characters becomes a space. */
export function toOneLine(text: string): string {
  return text.replace(RUNS_OF_CONTROLS, ' ')
}

/** Keeps the lines of a text: control characters other than line feeds and tabs become spaces. */
export function toLines(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(CONTROLS, (found) => (found === '\n' || found === '\t' ? found : ' '))
}

/** Makes one line of a text: control characters are shown as in JSON, for example `\u001b`. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

// The escape sequences of terminals (control sequences, system commands, other control strings, and two-character escapes):
// https://www.ecma-international.org/publications-and-standards/standards/ecma-48/
// A control string ends at a line break at the latest, so that it cannot hide the lines after it.
export const ESCAPE_SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-OQ-WYZ\\`-~]/g

/** Removes codes for a terminal, such as those of colours. */
export const withoutAnsi = (text: string): string => text.replace(ESCAPE_SEQUENCE, '')
