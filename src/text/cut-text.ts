/** Cuts texts in UTF-16 units, as `length` counts them. A surrogate pair is never split. */

/** The first `maxChars` units of a text, or one less where that would split a pair. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '')
}

/** The last `count` units of a text, or one less where that would split a pair. */
export function lastChars(text: string, count: number): string {
  return text.length <= count ? text : text.slice(text.length - count).replace(/^[\uDC00-\uDFFF]/, '')
}

/** A text in parts of `size` units, or one less where that would split a pair. @param size at least 2 */
export function* partsOf(text: string, size: number): Generator<string, void> {
  for (let from = 0; from < text.length;) {
    const part = from + size < text.length ? cutText(text.slice(from, from + size + 1), size) : text.slice(from)
    yield part
    from += part.length
  }
}
