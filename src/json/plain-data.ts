/**
 * Makes frozen copies of values from outside. JSON data is copied unchanged; values that JSON cannot represent become readable text. So a record can
 * always be shown and serialized, and does not change with the original.
 */

import { defined } from '../defined.js'

/** How many levels are copied; deeper values are replaced by a note. */
export const MAX_LEVELS = 100

/**
 * The maximum number of copied objects: in all, and below the given level. Getters and proxies may create new objects on each read, and nest them
 * deeply. Further objects are replaced by a note.
 */
const MAX_OBJECTS = { inAll: 1_000_000, deep: 100_000, levels: 12 } as const

/** Copies and freezes any value. Never throws, even if getters, proxies or `toJSON` methods do. */
export function toPlainData(value: unknown): unknown {
  return copy(value, { copies: new Map(), deep: 0, isCut: false }, 0)
}

/** As `toPlainData`, but undefined for a value above the limits, for input that must not change. */
export function toWholePlainData<T>(value: T): T | undefined {
  const seen: Seen = { copies: new Map(), deep: 0, isCut: false }
  const copied = copy(value, seen, 0)
  return seen.isCut ? undefined : (copied as T)
}

interface Seen {
  /** Finished copies by original, so that shared parts are copied once. `UNDER_WAY` marks the ancestors of the current object. */
  readonly copies: Map<object, unknown>
  /** The number of objects below the first levels. */
  deep: number
  /** Whether a value was replaced by a note. */
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
    return copyFields(Object.entries({ name, message, ...defined({ cause }) }), seen, depth)
  }
  // With the built-in methods, because an object may override them with endless ones.
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

/** Longer arrays are checked for holes, because one item with a large index makes an array of billions. */
const MAX_UNSEEN_ITEMS = 100_000

/** Copies a long array with holes as an object of its items. */
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

/** Defines the field, because assigning to `__proto__` would not create one. */
function setField(fields: Record<string, unknown>, key: string, value: unknown): void {
  if (!(key in fields)) fields[key] = value
  else Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true })
}
