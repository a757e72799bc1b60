/** Text tables. */
import { systemClock } from '../system/clock.js'
import { toOneLine } from '../data/control-characters.js'

/** @returns the line of heads, and one line for each row; the last column is not padded */
export function formatTable(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [heads, ...rows]
  const widths = heads.map((_head, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  return all.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** The time since a timestamp as text, such as `12s`, `3m`, `2h` or `4d`. */
export function formatAge(since: number, now: number = systemClock.now()): string {
  const seconds = Math.max(0, Math.round((now - since) / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.round(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)}h` : `${Math.round(seconds / 86_400)}d`
}

/** Shortens a text to one line of at most `most` characters, without control characters. */
export function oneLine(text: string, most: number): string {
  const line = toOneLine(text).trim()
  return line.length <= most ? line : `${line.slice(0, most - 3)}...`
}
