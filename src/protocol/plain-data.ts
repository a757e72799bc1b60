/**
 * Frozen copies of what a run handed over. JSON data is kept as it is; what JSON has no word for becomes something a
 * person can read, so that a record can always be shown, journaled and never changed through the original.
 */

/** A run that returns something deeper than this gets a note in its place. */
const MAX_DEPTH = 100

/** Copies and freezes any value. Never throws, whatever getters, proxies or `toJSON` methods do. */
export function toPlainData(value: unknown): unknown {
  return copy(value, { above: new Set(), done: new Map() }, 0)
}

interface Seen {
  /** The objects that hold the one being copied. */
  readonly above: Set<object>
  /** Copies of objects that occur more than once, so that shared parts are copied once. */
  readonly done: Map<object, unknown>
}

function copy(value: unknown, seen: Seen, depth: number): unknown {
  switch (typeof value) {
    case 'bigint':
      return value.toString()
    case 'symbol':
      return value.toString()
    case 'function':
      return '[function]'
    case 'object':
      if (value === null) return null
      if (seen.above.has(value)) return '[circular]'
      if (seen.done.has(value)) return seen.done.get(value)
      if (depth >= MAX_DEPTH) return '[too deep]'
      seen.above.add(value)
      try {
        const copied = copyObject(value, seen, depth + 1)
        seen.done.set(value, copied)
        return copied
      } catch (error) {
        return unreadable(error)
      } finally {
        seen.above.delete(value)
      }
    default:
      return value
  }
}

function copyObject(value: object, seen: Seen, depth: number): unknown {
  if (Array.isArray(value)) return Object.freeze(Array.from(value, (item) => copy(item, seen, depth)))
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (value instanceof Error) {
    const { name, message, cause } = value
    return copyFields(Object.entries({ name, message, ...(cause !== undefined && { cause }) }), seen, depth)
  }
  if (value instanceof Map) {
    return copyFields(
      [...value].map(([k, v]) => [String(k), v] as const),
      seen,
      depth,
    )
  }
  if (value instanceof Set) return copyObject([...value], seen, depth)
  if (ArrayBuffer.isView(value)) return `[${value.constructor.name}: ${value.byteLength} bytes]`
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return copy(toJSON.call(value, ''), seen, depth)
  const keys = Object.keys(value)
  return copyFields(
    keys.map((key) => [key, read(value, key)] as const),
    seen,
    depth,
  )
}

function read(from: object, key: string): unknown {
  try {
    return (from as Record<string, unknown>)[key]
  } catch (error) {
    return unreadable(error)
  }
}

/** What was thrown may itself not bear to be looked at. */
function unreadable(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : undefined
    if (typeof message === 'string') return `[unreadable: ${message}]`
  } catch {
    // Then nothing is said about it.
  }
  return '[unreadable: it threw]'
}

function copyFields(fields: readonly (readonly [string, unknown])[], seen: Seen, depth: number): object {
  // fromEntries defines its fields, so that one called __proto__ stays a field.
  return Object.freeze(Object.fromEntries(fields.map(([key, value]) => [key, copy(value, seen, depth)])))
}
