/**
 * Makes frozen copies of values from outside. JSON data is copied unchanged. Values that JSON cannot represent become readable text. So a record can
 * always be shown and serialized, and does not change when the original changes.
 */

import { omitUndefined } from './omit-undefined.js'

/** How many levels are copied. A text such as `[too deep]` takes the place of deeper values. */
export const MAX_LEVELS = 100

/**
 * The maximum number of copied objects: in all, and below the first `levels` levels. The limits are needed because getters and proxies may create new
 * objects at each read. A text takes the place of further objects.
 */
const MAX_OBJECTS = { inAll: 1_000_000, deep: 100_000, levels: 12 } as const

/** Copies and freezes any value. Never throws, even if getters, proxies or `toJSON` methods do. */
export function toPlainData(value: unknown): unknown {
  return copy(value, { copies: new Map(), deep: 0, isCut: false }, 0)
}

/** Copies and freezes a value as `toPlainData` does. Returns undefined if the value exceeds a limit. For input that must not be shortened. */
export function toWholePlainData<T>(value: T): T | undefined {
  const seen: Seen = { copies: new Map(), deep: 0, isCut: false }
  const copied = copy(value, seen, 0)
  return seen.isCut ? undefined : (copied as T)
}

interface Seen {
  /**
   * The finished copies by their originals, so that an object that occurs several times is copied once. `UNDER_WAY` marks objects that are being
   * copied.
   */
  readonly copies: Map<object, unknown>
  /** The number of copied objects below the first `MAX_OBJECTS.levels` levels. */
  deep: number
  /** Whether a text has taken the place of a value that exceeds a limit. */
  isCut: boolean
}

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
      const known = seen.copies.get(value)
      if (known === UNDER_WAY) return '[circular]'
      if (known !== undefined || seen.copies.has(value)) return known
      if (depth >= MAX_LEVELS) {
        seen.isCut = true
        return '[too deep]'
      }
      if (depth > MAX_OBJECTS.levels) seen.deep += 1
      if (seen.copies.size >= MAX_OBJECTS.inAll || seen.deep > MAX_OBJECTS.deep) {
        seen.isCut = true
        return '[too many objects]'
      }
      seen.copies.set(value, UNDER_WAY)
      try {
        const copied = copyObject(value, seen, depth + 1)
        seen.copies.set(value, copied)
        return copied
      } catch (error) {
        seen.copies.delete(value)
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
    return copyFields(Object.entries({ name, message, ...omitUndefined({ cause }) }), seen, depth)
  }
  // The methods of `Map.prototype` and `Set.prototype` are called, because the object may have own methods that never end.
  if (value instanceof Map) {
    const entries: (readonly [string, unknown])[] = []
    Map.prototype.forEach.call(value, (field, key) => entries.push([String(key), field]))
    return copyFields(entries, seen, depth)
  }
  if (value instanceof Set) {
    const items: unknown[] = []
    Set.prototype.forEach.call(value, (item) => items.push(item))
    return copyItems(items, seen, depth)
  }
  if (ArrayBuffer.isView(value)) return `[${value.constructor.name}: ${value.byteLength} bytes]`
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return copy(toJSON.call(value, ''), seen, depth)
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(value)) setField(fields, key, copy(read(value, key), seen, depth))
  return Object.freeze(fields)
}

/** A longer array is checked for holes first: one item with a large index makes an array of billions of items. */
const MAX_UNSEEN_ITEMS = 100_000

/** Copies an array. A long array with holes becomes an object with the items. */
function copyItems(items: readonly unknown[], seen: Seen, depth: number): object {
  if (items.length > MAX_UNSEEN_ITEMS) {
    const entries = Object.entries(items)
    if (entries.length < items.length) return copyFields(entries, seen, depth)
  }
  return Object.freeze(Array.from({ length: items.length }, (_item, at) => copy(items[at], seen, depth)))
}

function read(from: object, key: string): unknown {
  try {
    return (from as Record<string, unknown>)[key]
  } catch (error) {
    return unreadable(error)
  }
}

/** Describes an exception of a getter or method. The thrown value may throw as well when it is read. */
function unreadable(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : undefined
    if (typeof message === 'string') return `[unreadable: ${message}]`
  } catch {
    // The message of the error cannot be read, so it is left out.
  }
  return '[unreadable: it threw]'
}

function copyFields(given: readonly (readonly [string, unknown])[], seen: Seen, depth: number): object {
  const fields: Record<string, unknown> = {}
  for (const [key, value] of given) setField(fields, key, copy(value, seen, depth))
  return Object.freeze(fields)
}

/** Defines the field. An assignment to `__proto__` would change the prototype instead. */
function setField(fields: Record<string, unknown>, key: string, value: unknown): void {
  if (!(key in fields)) fields[key] = value
  else Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true })
}
