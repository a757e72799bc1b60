import { cutText } from './cut-text.js'

/** Describes any value in a short text of at most 80 characters, for error messages. Never throws. */
export function preview(value: unknown): string {
  const text = describe(value)
  return text.length > 80 ? `${cutText(text, 77)}...` : text
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
    const written: Written = { text: '', around: new Set() }
    return writeJson(value, '', written) ? written.text : 'undefined'
  } catch {
    return 'an object that cannot be shown'
  }
}

/**
 * Writing stops after about this many characters, slightly more than are shown. A value in which objects occur many times could otherwise become
 * longer than a string may be.
 */
const MAX_CHARS = 100

interface Written {
  text: string
  /** The objects that contain the current object. */
  readonly around: Set<object>
}

/**
 * Writes a value as `JSON.stringify` does, but stops soon after MAX_CHARS.
 * @returns false for a value that JSON leaves out
 */
function writeJson(given: unknown, key: string, to: Written): boolean {
  if (to.text.length > MAX_CHARS) return true
  const { toJSON } = Object(given) as { toJSON?: unknown }
  const value: unknown =
    typeof given === 'object' && typeof toJSON === 'function'
      ? (toJSON as (key: string) => unknown).call(given, key)
      : given
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return false
  if (typeof value === 'string') to.text += JSON.stringify(value.slice(0, MAX_CHARS))
  else if (typeof value === 'bigint') to.text += `"${value}n"`
  else if (typeof value !== 'object' || value === null) to.text += JSON.stringify(value)
  else {
    if (to.around.has(value)) throw new TypeError('circular')
    to.around.add(value)
    if (Array.isArray(value)) writeItems(value, to)
    else writeFields(value, to)
    to.around.delete(value)
  }
  return true
}

function writeItems(items: readonly unknown[], to: Written): void {
  to.text += '['
  for (let at = 0; at < items.length && to.text.length <= MAX_CHARS; at += 1) {
    if (at > 0) to.text += ','
    if (!writeJson(items[at], String(at), to)) to.text += 'null'
  }
  to.text += ']'
}

function writeFields(fields: object, to: Written): void {
  to.text += '{'
  let isFirst = true
  for (const key of Object.keys(fields)) {
    if (to.text.length > MAX_CHARS) break
    const before = to.text
    to.text += `${isFirst ? '' : ','}${JSON.stringify(key.slice(0, MAX_CHARS))}:`
    if (writeJson((fields as Record<string, unknown>)[key], key, to)) isFirst = false
    else to.text = before
  }
  to.text += '}'
}
