/** JSON in and out: what comes is bounded in depth, and what goes out can always be written. */
import { toPlainData } from '../protocol/plain-data.js'

export type ParsedJson =
  | { readonly value: unknown }
  | { readonly error: string; readonly code: 'MALFORMED_JSON' | 'TOO_DEEP'; readonly message: string }

/** Reads JSON that is nested no deeper than `nesting`. Never throws. */
export function parseJson(text: string, nesting: number): ParsedJson {
  if (isDeeper(text, nesting)) {
    return {
      error: 'Nested too deep',
      code: 'TOO_DEEP',
      message: `The JSON is nested too deep: at most ${nesting} levels are read.`,
    }
  }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { error: 'Malformed JSON', code: 'MALFORMED_JSON', message: 'The text is not JSON.' }
  }
}

/** Counts brackets outside strings, so that nothing has to be built to be refused. */
function isDeeper(text: string, nesting: number): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at)
    if (isInString) {
      if (char === BACKSLASH) at += 1
      else if (char === QUOTE) isInString = false
    } else if (char === QUOTE) isInString = true
    else if (char === BRACE || char === BRACKET) {
      depth += 1
      if (depth > nesting) return true
    } else if (char === BRACE_END || char === BRACKET_END) depth -= 1
  }
  return false
}

const [QUOTE, BACKSLASH, BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d]

/** Writes JSON. What a tool returned may be something that JSON has no word for; then a readable copy is written. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return JSON.stringify(toPlainData(value))
  }
}
