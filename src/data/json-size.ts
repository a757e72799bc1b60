/** Computes the size of a value as JSON without writing the text. */

/**
 * Returns the size of `JSON.stringify(value)` in bytes of UTF-8, for plain data (`toPlainData`).
 * @param most where counting stops. If the size is greater, the result is some number greater than `most`
 */
export function jsonBytes(value: unknown, most = Infinity): number {
  return bytesOf(value, most, new Map())
}

/** The sizes of objects that were counted to their end, so that an object that occurs several times is counted once. */
type Sizes = Map<object, number>

function bytesOf(value: unknown, most: number, sizes: Sizes): number {
  switch (typeof value) {
    case 'string':
      return textBytes(value, most)
    case 'number':
      return Number.isFinite(value) ? String(value).length : NULL_BYTES
    case 'boolean':
      return String(value).length
    case 'object':
      return value === null ? NULL_BYTES : objectBytes(value, most, sizes)
    default:
      return 0
  }
}

const NULL_BYTES = 4

function objectBytes(value: object, most: number, sizes: Sizes): number {
  const known = sizes.get(value)
  if (known !== undefined) return known
  const bytes = Array.isArray(value) ? itemsBytes(value, most, sizes) : fieldsBytes(value, most, sizes)
  if (bytes <= most) sizes.set(value, bytes)
  return bytes
}

function itemsBytes(items: readonly unknown[], most: number, sizes: Sizes): number {
  // The two brackets, and the commas between the items.
  let bytes = 2 + Math.max(0, items.length - 1)
  for (const item of items) {
    // JSON has no undefined: as an item it is written as null.
    bytes += bytesOf(item, most - bytes, sizes) || NULL_BYTES
    if (bytes > most) break
  }
  return bytes
}

function fieldsBytes(fields: object, most: number, sizes: Sizes): number {
  let bytes = 1
  for (const [key, value] of Object.entries(fields)) {
    const size = bytesOf(value, most - bytes, sizes)
    // A field that is undefined is left out. The 2 bytes are the colon, and a comma or the closing brace.
    if (size > 0) bytes += textBytes(key, most - bytes) + size + 2
    if (bytes > most) break
  }
  return Math.max(2, bytes)
}

function textBytes(text: string, most: number): number {
  if (text.length + 2 > most) return text.length + 2
  let bytes = 2
  for (let at = 0; at < text.length; at += 1) bytes += unitBytes(text, at)
  return bytes
}

/** Returns the bytes of one UTF-16 unit in JSON. Each half of a surrogate pair counts as two bytes. A lone surrogate is written as an escape. */
function unitBytes(text: string, at: number): number {
  const unit = text.charCodeAt(at)
  if (unit < 0x20) return SHORT_ESCAPES.has(unit) ? 2 : 6
  if (unit < 0x80) return unit === QUOTE || unit === BACKSLASH ? 2 : 1
  if (unit < 0x800) return 2
  if (unit < 0xd800 || unit > 0xdfff) return 3
  const isFirst = unit < 0xdc00
  const other = text.charCodeAt(isFirst ? at + 1 : at - 1)
  const isPair = isFirst ? other >= 0xdc00 && other <= 0xdfff : other >= 0xd800 && other <= 0xdbff
  return isPair ? 2 : 6
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
/** The codes of \b \t \n \f \r, which JSON escapes with two characters. */
const SHORT_ESCAPES: ReadonlySet<number> = new Set([8, 9, 10, 12, 13])
