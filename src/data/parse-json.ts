/** Parses JSON of limited depth. Values that are nested more deeply could not be validated or serialized. */
import { withoutByteOrderMark } from './byte-order-mark.js'

export type ParsedJson =
  | { readonly value: unknown }
  | { readonly error: string; readonly code: 'MALFORMED_JSON' | 'TOO_DEEP'; readonly message: string }

/** Parses JSON with at most `nesting` levels, also after a byte order mark. Never throws. */
export function parseJson(text: string, nesting: number): ParsedJson {
  if (isDeeper(text, nesting)) {
    return {
      error: 'Nested too deep',
      code: 'TOO_DEEP',
      message: `The JSON is nested too deep: the limit is ${nesting} levels.`,
    }
  }
  try {
    return { value: JSON.parse(withoutByteOrderMark(text)) as unknown }
  } catch {
    return { error: 'Malformed JSON', code: 'MALFORMED_JSON', message: 'The text is not JSON.' }
  }
}

/** Counts the brackets outside strings. So JSON that is nested too deeply is refused before its value is built. */
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
