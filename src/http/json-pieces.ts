/** Writes JSON piece by piece, so that a large value is never in memory as one text. */

/** The longest slice of a text that is written at once, in UTF-16 units. */
const SLICE = 64 * 1024

/** The text of `JSON.stringify(value)` in pieces, for plain data (`toPlainData`). */
export function* jsonPieces(value: unknown): Generator<string, void> {
  if (typeof value === 'string' && value.length > SLICE) yield* textPieces(value)
  else if (Array.isArray(value)) {
    yield '['
    for (const [index, item] of value.entries()) {
      if (index > 0) yield ','
      yield* jsonPieces(item ?? null)
    }
    yield ']'
  } else if (typeof value === 'object' && value !== null) {
    yield '{'
    let separator = ''
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue
      yield `${separator}${JSON.stringify(key)}:`
      yield* jsonPieces(item)
      separator = ','
    }
    yield '}'
  } else yield JSON.stringify(value ?? null)
}

function* textPieces(text: string): Generator<string, void> {
  yield '"'
  for (let from = 0; from < text.length;) {
    const end = from + SLICE
    // A surrogate pair is not cut in two.
    const to = isFirstOfPair(text.charCodeAt(end - 1)) ? end + 1 : end
    yield JSON.stringify(text.slice(from, to)).slice(1, -1)
    from = to
  }
  yield '"'
}

const isFirstOfPair = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** The pieces as a stream: the next is written when the reader has taken the one before. */
export function jsonStream(value: unknown): ReadableStream<Uint8Array> {
  const pieces = jsonPieces(value)
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      let text = ''
      while (text.length < SLICE) {
        const { done = false, value: piece } = pieces.next()
        if (done) break
        text += piece ?? ''
      }
      if (text === '') controller.close()
      else controller.enqueue(encoder.encode(text))
    },
  })
}
