/** Shortens task ids to prefixes that are still unique. */

/** The minimum length of a short id, in characters. */
export const MIN_SHORT_ID = 8

/**
 * Returns for each id its shortest prefix that is unique among the given ids and has at least eight characters. A prefix never ends inside a surrogate
 * pair. If an id is a prefix of another id, it is returned in full. A lookup prefers the exact id.
 */
export function shortIds(ids: Iterable<string>): Map<string, string> {
  const sorted = [...new Set(ids)].sort()
  const short = new Map<string, string>()
  sorted.forEach((id, index) => {
    const neighbours = [sorted[index - 1], sorted[index + 1]]
    const shared = Math.max(0, ...neighbours.map((other) => (other === undefined ? 0 : sharedPrefixLength(id, other))))
    let length = Math.max(MIN_SHORT_ID, shared + 1)
    if (/[\uD800-\uDBFF]/.test(id[length - 1] ?? '')) length += 1
    short.set(id, id.slice(0, length))
  })
  return short
}

function sharedPrefixLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}
