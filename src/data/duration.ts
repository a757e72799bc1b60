/** Formats durations for people. */

/** Formats a duration, such as `42s`, `3m 5s` or `2h 7m`. Returns `0s` if the end is before the start. */
export function formatDuration(startMs: number, endMs: number): string {
  const seconds = Math.max(0, Math.floor((endMs - startMs) / 1000))
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m ${seconds % 60}s`
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m`
}

/** Formats a time in ISO 8601. A restored record may have a time outside the range of `Date`, which is then shown as a number. */
export function isoTime(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString()
}
