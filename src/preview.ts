/** A short picture of any value for an error message; never throws, never longer than about eighty characters. */
export function preview(value: unknown): string {
  const text = picture(value)
  return text.length > 80 ? `${text.slice(0, 77).replace(/[\uD800-\uDBFF]$/, '')}...` : text
}

function picture(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.slice(0, 100))
    case 'bigint':
      return `${value}n`
    case 'function':
      return 'a function'
    case 'object':
      return value === null ? 'null' : pictureOfObject(value)
    default:
      return String(value)
  }
}

function pictureOfObject(value: object): string {
  try {
    if (value instanceof Error) return `${value.name}: ${value.message}`
    if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`
    // A toJSON may return nothing, whatever the signature says.
    const text = JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner)) as
      string | undefined
    return text ?? 'undefined'
  } catch {
    return 'an object that cannot be shown'
  }
}
