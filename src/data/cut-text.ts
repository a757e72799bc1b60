/** Cuts texts by the number of UTF-16 units, as `length` counts them. A surrogate pair is never split. */

/** Returns the first `maxChars` units of a text. Returns one unit less if the cut would split a surrogate pair. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '')
}

/** Returns the last `count` units of a text. Returns one unit less if the cut would split a surrogate pair. */
export function lastChars(text: string, count: number): string {
  return text.length <= count ? text : text.slice(text.length - count).replace(/^[\uDC00-\uDFFF]/, '')
}

/**
 * Yields a text in parts of `size` units. A part has one unit less if its end would split a surrogate pair.
 * @param size at least 2
 */
export function* partsOf(text: string, size: number): Generator<string, void> {
  for (let from = 0; from < text.length;) {
    const part = from + size < text.length ? cutText(text.slice(from, from + size + 1), size) : text.slice(from)
    yield part
    from += part.length
  }
}
