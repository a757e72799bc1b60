/**
 * Converts a value for a viewer to plain JSON data. The value is redacted. Large, deep and circular values are cut, and only the part that is shown
 * is read.
 */
import { StateMachine } from 'xstate'
import { omitUndefined } from '../../data/omit-undefined.js'
import type { Redact } from './redaction.js'

export interface ShownLimits {
  readonly depth: number
  /** The maximum length of one string, in characters. */
  readonly stringChars: number
  /** The maximum number of fields and elements together. */
  readonly values: number
  /** The maximum length of all text together, in characters. */
  readonly chars: number
}

/** The limits for events and snapshots. The depth is the same as in `@statelyai/inspect`. */
const MESSAGE_LIMITS: ShownLimits = { depth: 10, stringChars: 10_000, values: 5000, chars: 200_000 }

interface Walk {
  readonly redact: Redact
  readonly limits: ShownLimits
  readonly above: Set<object>
  values: number
  chars: number
}

/** @throws what `redact`, a getter or a `toJSON` throws */
export function toShownValue(key: string, value: unknown, redact: Redact, limits = MESSAGE_LIMITS): unknown {
  return show(key, value, { redact, limits, above: new Set(), values: limits.values, chars: limits.chars })
}

function show(key: string, value: unknown, walk: Walk): unknown {
  const allowed = walk.redact(key, value)
  walk.values -= 1
  switch (typeof allowed) {
    case 'string':
      return showString(allowed, walk)
    case 'bigint':
    case 'symbol':
      return allowed.toString()
    case 'function':
      // A function is shown in the same way as in `@statelyai/inspect`.
      return { type: allowed.name }
    case 'object':
      return allowed === null ? null : showObject(key, allowed, walk)
    default:
      return allowed
  }
}

function showString(text: string, walk: Walk): string {
  const room = Math.max(0, Math.min(walk.limits.stringChars, walk.chars))
  walk.chars -= Math.min(text.length, room)
  return text.length <= room ? text : `${text.slice(0, room)}… [${text.length - room} more characters]`
}

function showObject(key: string, value: object, walk: Walk): unknown {
  if (walk.above.has(value)) return '[Circular]'
  if (ArrayBuffer.isView(value)) return `[${value.constructor.name}: ${value.byteLength} bytes]`
  // A machine in a context is shown by its id only, because its definition would be sent with every snapshot.
  if (value instanceof StateMachine) return `[machine ${value.id}]`
  if (walk.above.size >= walk.limits.depth) return Array.isArray(value) ? '[Array]' : '[Object]'
  walk.above.add(value)
  try {
    if (value instanceof Error) return showError(value, walk)
    const { toJSON } = value as { toJSON?: unknown }
    if (typeof toJSON === 'function') return showJson(key, toJSON.call(value, key), walk)
    return Array.isArray(value) ? showArray(key, value, walk) : showFields(value, walk)
  } finally {
    walk.above.delete(value)
  }
}

/** Shows what a `toJSON` returned. As in JSON.stringify, a `toJSON` of that value is not called. */
function showJson(key: string, json: unknown, walk: Walk): unknown {
  if (typeof json !== 'object' || json === null) return show(key, json, walk)
  return Array.isArray(json) ? showArray(key, json, walk) : showFields(json, walk)
}

function showError(error: Error, walk: Walk): unknown {
  const { name, message } = error
  const { code } = error as { code?: unknown }
  return showFields({ name, ...omitUndefined({ code }), message }, walk)
}

function showArray(key: string, elements: readonly unknown[], walk: Walk): unknown[] {
  const shown: unknown[] = []
  for (const element of elements) {
    if (walk.values <= 0) {
      shown.push(`[${elements.length - shown.length} more]`)
      break
    }
    shown.push(show(key, element, walk))
  }
  return shown
}

function showFields(value: object, walk: Walk): object {
  const fields: [string, unknown][] = []
  for (const name in value) {
    if (!Object.hasOwn(value, name)) continue
    if (walk.values <= 0) {
      fields.push(['…', '[more]'])
      break
    }
    walk.chars -= name.length
    fields.push([name, show(name, (value as Record<string, unknown>)[name], walk)])
  }
  // `fromEntries` defines properties, so a field with the name `__proto__` stays a field.
  return Object.fromEntries(fields)
}
