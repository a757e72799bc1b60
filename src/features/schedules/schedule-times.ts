/** Computes when schedules fire. Cron expressions and local times need the package `croner`, which is loaded on first use. */
import type { Cron } from 'croner'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { loadPackage } from '../../system/optional-package.js'
import { MAX_AHEAD_MS, type ScheduleInfo } from '../../protocol/schedules.js'

export type Rule = Pick<ScheduleInfo, 'every' | 'cron' | 'timeZone'>

/**
 * The maximum number of missed firings of a cron expression that are counted. Finding each of them takes about 0.1 ms, and a thousand schedules may
 * have missed some.
 */
export const MAX_COUNTED = 10

const DAY_MS = 86_400_000

/**
 * Returns which firings are due at `now` if the first one fell due at `first`: their number (`count`), and when the last of them fell due. `next` is
 * when the schedule fires again; undefined for never.
 * @throws AgentTasksError `PACKAGES_MISSING`
 */
export function dueFirings(rule: Rule, first: number, now: number, minPeriodMs: number) {
  const { every, cron } = rule
  if (every !== undefined) {
    const count = Math.floor((now - first) / every) + 1
    return { count, last: first + (count - 1) * every, next: first + count * every }
  }
  const following = (at: number): number | undefined => cronTime(rule, at + minPeriodMs - 1)
  let [count, last, next] = [1, first, cron === undefined ? undefined : following(first)]
  while (next !== undefined && next <= now) {
    if (count === MAX_COUNTED) {
      const [latest] = ruleOf(rule).previousRuns(1, new Date(now + 1))
      return { count: count + 1, last: latest?.getTime() ?? last, next: following(now) }
    }
    count += 1
    last = next
    next = following(last)
  }
  return { count, last, next }
}

/**
 * Returns the next time that matches a cron expression. When daylight saving time begins or ends, an expression without `*` and `/` in minutes and
 * hours fires once: at the end of a skipped hour, and in the first of two equal hours. Other expressions do not fire in the skipped hour, and fire in
 * both equal hours.
 * @throws AgentTasksError `PACKAGES_MISSING`
 * @throws the error of croner for an invalid expression
 */
export function cronTime(rule: Rule, after: number): number | undefined {
  const next = ruleOf(rule).nextRun(new Date(after))?.getTime()
  // croner 11.0.1 leaves out the times of a skipped hour that ends a day, as in America/Nuuk.
  const gapEnd = isFixed(rule) ? skippedAfter(rule, after) : undefined
  return gapEnd !== undefined && (next === undefined || gapEnd < next) ? gapEnd : next
}

// Created without a function to call, so that croner sets no timer and only computes times.
const ruleOf = ({ cron = '', timeZone }: Rule): Cron =>
  new (loadCron())(cron, { mode: '5-part', fixedTimeRule: 'no-wildcard', timezone: timeZone })

const isFixed = ({ cron = '' }: Rule): boolean => /^[\d,-]+\s+[\d,-]+\s/.test(cron.trim())

/** Returns the end of the skipped hour that contains the next match, if the match is in one and that end is after `after`. */
function skippedAfter(rule: Rule, after: number): number | undefined {
  const { timeZone } = rule
  const match = ruleOf({ ...rule, timeZone: 'UTC' })
    .nextRun(new Date(localTimeAt(after, timeZone)))
    ?.getTime()
  if (match === undefined) return undefined
  const offsets = [-DAY_MS, DAY_MS].map((away) => localTimeAt(match + away, timeZone) - (match + away))
  const [late = 0, early = 0] = offsets.map((offset) => match - offset)
  if ([late, early].some((at) => localTimeAt(at, timeZone) === match)) return undefined
  const [offset = 0] = offsets
  let [before, end] = [early, late]
  while (end - before > 1000) {
    const middle = Math.round((before + end) / 2000) * 1000
    if (localTimeAt(middle, timeZone) - middle === offset) before = middle
    else end = middle
  }
  return end > after ? end : undefined
}

/** Returns the local time of a zone as if it were one of UTC, in ms. */
function localTimeAt(at: number, timeZone: string): number {
  const seconds = Math.floor(at / 1000) * 1000
  return Date.parse(`${formatOf(timeZone).format(seconds).slice(0, 19).replace(' ', 'T')}Z`) + (at - seconds)
}

/**
 * Returns the first time that matches a cron expression.
 * @throws INVALID_INPUT for an invalid expression, or one that never matches
 * @throws AgentTasksError `PACKAGES_MISSING`
 */
export function firstMatch(rule: Rule, now: number): number {
  let why = 'one that matches a time'
  try {
    const first = cronTime(rule, now)
    if (first !== undefined) return first
  } catch (error) {
    if (error instanceof AgentTasksError) throw error
    why = `a cron expression of five fields (${String(error)})`
  }
  throw new InvalidInputError('input.cron', rule.cron, why)
}

const ISO_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?$/

/**
 * Parses the time of a schedule that fires once. A local time that daylight saving time skips is read with the offset before the change. A local time
 * that occurs twice means the first of both.
 * @throws INVALID_INPUT for an invalid time
 * @throws AgentTasksError `PACKAGES_MISSING`
 */
export function readTime(at: string | Date, timeZone: string | undefined, now: number): number {
  const expected = (what: string): InvalidInputError => new InvalidInputError('input.at', at, what)
  const time = typeof at === 'string' ? parseTime(at, timeZone) : at.getTime()
  if (time === undefined) throw expected('a time with an offset such as +02:00, or a local time and timeZone')
  if (Number.isNaN(time)) throw expected('an ISO time such as 2027-03-28T09:00:00+02:00')
  if (time < now || time > now + MAX_AHEAD_MS) throw expected('a time within the next ten years')
  return time
}

/** Returns NaN for text of another form, and undefined for a local time without a time zone. */
function parseTime(text: string, timeZone: string | undefined): number | undefined {
  const [, date, offset] = ISO_TIME.exec(text) ?? []
  if (date === undefined) return NaN
  if (offset === undefined && timeZone === undefined) return undefined
  // Both `Date` and croner accept the 30th of February and read it as the 2nd of March.
  if (new Date(`${date}T00:00Z`).getUTCDate() !== Number(date.slice(-2))) return NaN
  return offset === undefined ? localTime(text, timeZone ?? '') : Date.parse(text)
}

function localTime(at: string, timezone: string): number {
  try {
    return new (loadCron())(at, { timezone }).getOnce()?.getTime() ?? NaN
  } catch (error) {
    if (error instanceof AgentTasksError) throw error
    return NaN
  }
}

const SECOND = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'longOffset',
} as const

/** Cached, because the creation of a format takes 0.2 ms. */
const formats = new Map<string, Intl.DateTimeFormat>()

/** Formats a time in a zone: `2027-03-28 09:00:00 GMT+02:00 (Europe/Berlin)`. */
export function localText(at: number, timeZone: string): string {
  return `${formatOf(timeZone).format(at).replace('\u2212', '-')} (${timeZone})`
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { ...SECOND, timeZone })
  if (formats.size > 100) formats.clear()
  formats.set(timeZone, format)
  return format
}

const loadCron = (): typeof Cron =>
  (loadPackage('croner', 11, 'Schedules with cron or a local time') as typeof import('croner')).Cron
