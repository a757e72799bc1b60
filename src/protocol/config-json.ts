/** Reads the JSON of a configuration, in which people write comments and commas after the last item. */
import { createScanner, type ScanError, type SyntaxKind } from 'jsonc-parser'
import { withoutByteOrderMark } from '../data/byte-order-mark.js'

// The enums of jsonc-parser are only types under `isolatedModules`.
const COMMA: SyntaxKind.CommaToken = 5
const OPENINGS: readonly SyntaxKind[] = [1, 3] satisfies [SyntaxKind.OpenBraceToken, SyntaxKind.OpenBracketToken]
const ENDS: readonly SyntaxKind[] = [2, 4] satisfies [SyntaxKind.CloseBraceToken, SyntaxKind.CloseBracketToken]
const COMMENTS: readonly SyntaxKind[] = [12, 13] satisfies [SyntaxKind.LineCommentTrivia, SyntaxKind.BlockCommentTrivia]
const SPACES: readonly SyntaxKind[] = [14, 15] satisfies [SyntaxKind.LineBreakTrivia, SyntaxKind.Trivia]
const EOF: SyntaxKind.EOF = 17
const NO_ERROR: ScanError.None = 0

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
  let before: SyntaxKind | undefined
  let comma: number | undefined
  for (let kind = scanner.scan(); kind !== EOF; kind = scanner.scan()) {
    if (SPACES.includes(kind)) continue
    const at = scanner.getTokenOffset()
    if (COMMENTS.includes(kind)) {
      if (scanner.getTokenError() === NO_ERROR) parts.push([at, scanner.getTokenLength()])
      continue
    }
    if (comma !== undefined && ENDS.includes(kind)) parts.push([comma, 1])
    comma = kind === COMMA && endsItem(before) ? at : undefined
    before = kind
  }
  return parts.sort(([one], [other]) => one - other)
}

const endsItem = (kind: SyntaxKind | undefined): boolean =>
  kind !== undefined && kind !== COMMA && !OPENINGS.includes(kind)

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
