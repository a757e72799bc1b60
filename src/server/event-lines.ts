/**
 * Writes the events of a server as lines of its log: `<event> name=value …`. Values from clients are quoted and cut, and control characters are
 * escaped. The number of lines is limited, because clients can cause any number of events.
 */
import { elapsedMs, type Clock } from '../system/clock.js'
import type { Log } from './http/log.js'
import { cutText } from '../data/cut-text.js'

/** The fields of a line, in order. Undefined fields are left out. */
export type Fields = Readonly<Record<string, string | number | undefined>>

export type WriteEvent = (level: 'info' | 'debug', event: string, fields?: Fields) => void

/** The maximum number of lines of each level in a minute. */
export const MAX_LINES = 600
const MINUTE_MS = 60_000
/** The longest value, in characters. */
const MAX_VALUE = 200

export function createEventLines(log: Log, clock: Clock): WriteEvent {
  const counts = { info: { endsAt: 0, lines: 0 }, debug: { endsAt: 0, lines: 0 } }
  return (level, event, fields = {}) => {
    const count = counts[level]
    const now = elapsedMs(clock)
    if (now >= count.endsAt) {
      if (count.lines > MAX_LINES) log(level, `log shortened lines=${count.lines - MAX_LINES}`)
      count.endsAt = now + MINUTE_MS
      count.lines = 0
    }
    count.lines += 1
    if (count.lines <= MAX_LINES) log(level, [event, ...Object.entries(fields).flatMap(fieldText)].join(' '))
  }
}

/** Formats one field. Addresses, ids and codes need no quotes. */
function fieldText([name, value]: [string, string | number | undefined]): string[] {
  if (value === undefined) return []
  const text = String(value)
  if (/^[\w.:-]{1,200}$/.test(text)) return [`${name}=${text}`]
  return [`${name}=${JSON.stringify(text.length > MAX_VALUE ? `${cutText(text, MAX_VALUE)}…` : text)}`]
}
