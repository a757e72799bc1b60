/** A short text for any value, for error messages. Never throws; at most 80 characters. */
export function preview(value: unknown): string {
  const text = describe(value)
  return text.length > 80 ? `${cutText(text, 77)}...` : text
}

/** The first `maxChars` UTF-16 units of a text, or one less where that would split a surrogate pair. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '')
}

/** The last `count` UTF-16 units of a text, one fewer where that would split a surrogate pair. */
export function lastChars(text: string, count: number): string {
  return text.length <= count ? text : text.slice(text.length - count).replace(/^[\uDC00-\uDFFF]/, '')
}

function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.slice(0, 100))
    case 'bigint':
      return `${value}n`
    case 'function':
      return 'a function'
    case 'object':
      return value === null ? 'null' : describeObject(value)
    default:
      return String(value)
  }
}

function describeObject(value: object): string {
  try {
    if (value instanceof Error) return `${value.name}: ${value.message}`
    if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`
    // With a toJSON that returns undefined, the result is undefined despite its type.
    const text = JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner)) as
      string | undefined
    return text ?? 'undefined'
  } catch {
    return 'an object that cannot be shown'
  }
}
