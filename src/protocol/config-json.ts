/** Reads the JSON of a configuration, in which people write comments and commas after the last item. */
import { createScanner } from 'jsonc-parser'
import { withoutByteOrderMark } from '../data/byte-order-mark.js'

/** The kinds of tokens (`SyntaxKind`). jsonc-parser declares a `const enum`, which `isolatedModules` forbids to use. */
const [COMMA, EOF] = [5, 17]
/** `{` and `[`. */
const OPENINGS: readonly number[] = [1, 3]
/** `}` and `]`. */
const ENDS: readonly number[] = [2, 4]
/** Comments of a line and of a block. */
const COMMENTS: readonly number[] = [12, 13]
/** Line breaks and blanks. */
const SPACES: readonly number[] = [14, 15]
/** The error of a token without an error (`ScanError`). */
const NO_ERROR = 0

/** A place in a text: its offset and its length, in UTF-16 units. */
type Span = readonly [offset: number, length: number]

/**
 * Parses the text of a configuration: JSON that may have comments, a comma after the last item of a list or object, and a byte order mark.
 * @throws SyntaxError with the place of the mistake in the text
 */
export function parseConfigJson(text: string): unknown {
  const content = withoutByteOrderMark(text)
  return JSON.parse(withSpaces(content, lenientParts(content))) as unknown
}

/** Finds what strict JSON does not have. A comment that does not end is left, as a mistake. */
function lenientParts(text: string): Span[] {
  const scanner = createScanner(text)
  const parts: Span[] = []
  let before: number | undefined
  let comma: number | undefined
  for (let kind: number = scanner.scan(); kind !== EOF; kind = scanner.scan()) {
    if (SPACES.includes(kind)) continue
    const at = scanner.getTokenOffset()
    if (COMMENTS.includes(kind)) {
      const error: number = scanner.getTokenError()
      if (error === NO_ERROR) parts.push([at, scanner.getTokenLength()])
      continue
    }
    if (comma !== undefined && ENDS.includes(kind)) parts.push([comma, 1])
    comma = kind === COMMA && endsItem(before) ? at : undefined
    before = kind
  }
  return parts.sort(([one], [other]) => one - other)
}

const endsItem = (kind: number | undefined): boolean => kind !== undefined && kind !== COMMA && !OPENINGS.includes(kind)

/** Replaces parts of a text by spaces, so that a place in an error is the place in the file. */
function withSpaces(text: string, parts: readonly Span[]): string {
  let end = 0
  const pieces = parts.map(([offset, length]) => {
    const before = text.slice(end, offset)
    end = offset + length
    return before + text.slice(offset, end).replace(/[^\r\n]/g, ' ')
  })
  return pieces.join('') + text.slice(end)
}
