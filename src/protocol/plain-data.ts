/**
 * Frozen copies of values from outside. JSON data is copied as it is; what JSON cannot represent becomes readable text. So a record can always
 * be shown and serialised, and does not change with the original.
 */

/** Deeper values are replaced by a note. */
const MAX_DEPTH = 100

/** Copies and freezes any value. Never throws, also if getters, proxies or `toJSON` methods do. */
export function toPlainData(value: unknown): unknown {
  return copy(value, new Map(), 0)
}

/** Finished copies by original, so that shared parts are copied once; `UNDER_WAY` for the objects around the current one. */
type Seen = Map<object, unknown>

const UNDER_WAY = Symbol('under way')

function copy(value: unknown, seen: Seen, depth: number): unknown {
  switch (typeof value) {
    case 'bigint':
      return value.toString()
    case 'symbol':
      return value.toString()
    case 'function':
      return '[function]'
    case 'object': {
      if (value === null) return null
      const known = seen.get(value)
      if (known === UNDER_WAY) return '[circular]'
      if (known !== undefined || seen.has(value)) return known
      if (depth >= MAX_DEPTH) return '[too deep]'
      seen.set(value, UNDER_WAY)
      try {
        const copied = copyObject(value, seen, depth + 1)
        seen.set(value, copied)
        return copied
      } catch (error) {
        seen.delete(value)
        return unreadable(error)
      }
    }
    default:
      return value
  }
}

function copyObject(value: object, seen: Seen, depth: number): unknown {
  if (Array.isArray(value)) return copyItems(value, seen, depth)
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
  if (value instanceof Set) return copyItems([...value], seen, depth)
  if (ArrayBuffer.isView(value)) return `[${value.constructor.name}: ${value.byteLength} bytes]`
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return copy(toJSON.call(value, ''), seen, depth)
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(value)) setField(fields, key, copy(read(value, key), seen, depth))
  return Object.freeze(fields)
}

function copyItems(items: readonly unknown[], seen: Seen, depth: number): readonly unknown[] {
  return Object.freeze(Array.from(items, (item) => copy(item, seen, depth)))
}

function read(from: object, key: string): unknown {
  try {
    return (from as Record<string, unknown>)[key]
  } catch (error) {
    return unreadable(error)
  }
}

/** Reading a thrown value may throw as well. */
function unreadable(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : undefined
    if (typeof message === 'string') return `[unreadable: ${message}]`
  } catch {
    // No message then.
  }
  return '[unreadable: it threw]'
}

function copyFields(given: readonly (readonly [string, unknown])[], seen: Seen, depth: number): object {
  const fields: Record<string, unknown> = {}
  for (const [key, value] of given) setField(fields, key, copy(value, seen, depth))
  return Object.freeze(fields)
}

/** Also defines fields with inherited names: assigning to `__proto__` would not create a field. */
function setField(fields: Record<string, unknown>, key: string, value: unknown): void {
  if (!(key in fields)) fields[key] = value
  else Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true })
}
