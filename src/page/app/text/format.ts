/** Formats numbers, times and sizes. */

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Formats a duration in at most two units: `840 ms`, `4.2 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  const length = Math.max(0, ms)
  if (length < SECOND) return `${Math.round(length)} ms`
  if (length < 10 * SECOND - 50) return `${(length / SECOND).toFixed(1)} s`
  if (length < MINUTE - 500) return `${Math.round(length / SECOND)} s`
  if (length < HOUR - 500) return twoUnits(Math.round(length / SECOND), 60, 'min', 's')
  if (length < DAY - MINUTE / 2) return twoUnits(Math.round(length / MINUTE), 60, 'h', 'min')
  return twoUnits(Math.round(length / HOUR), 24, 'd', 'h')
}

function twoUnits(count: number, size: number, large: string, small: string): string {
  const rest = count % size
  return `${Math.floor(count / size)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`
}

/** Formats a duration that grows, in whole seconds up to ten, because fractions would flicker. */
export function growing(ms: number): string {
  return ms < 10 * SECOND ? `${Math.floor(Math.max(0, ms) / SECOND)} s` : duration(ms)
}

const clockTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const dayAndTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })

/** Formats the time of day in the reader's time zone: `14:03:09`. */
export function timeOfDay(at: number): string {
  return clockTime.format(at)
}

/** Formats the time of day with milliseconds. */
export function preciseTime(at: number): string {
  return `${clockTime.format(at)}.${String(Math.floor(at) % SECOND).padStart(3, '0')}`
}

export function fullTime(at: number): string {
  return dayAndTime.format(at)
}

/** Formats a size in powers of ten: `1.5 kB`. */
export function byteSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3))
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${['', 'kB', 'MB', 'GB'][power] ?? ''}`
}

const integers = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 3 })

/** Formats a number: `12,345`. */
export function count(value: number): string {
  return integers.format(value)
}

/** `1 task`, `2 tasks`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

/** What is said about an ended task whose program is being stopped. */
export const stoppingText = (ms: number): string =>
  `Its program is being stopped, which may take up to ${duration(ms)}.`
