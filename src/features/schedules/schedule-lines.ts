/** Describes schedules in words, with local times and their zone. */
import type { ScheduleInfo } from '../../protocol/schedules.js'
import { toOneLine } from '../../data/control-characters.js'
import { boundLines, previewText } from '../output/bounded-text.js'
import { localText, MAX_COUNTED } from './schedule-times.js'

const LIST_CHARS = 18_000

/**
 * Returns the text of the message with which a schedule fires.
 * @param due when the firing was due, in ms since the epoch
 * @param missed how many firings fell due while no process was running
 */
export function firingText(schedule: ScheduleInfo, due: number, missed: number, next: number | undefined): string {
  const { id, message = '', timeZone, cron } = schedule
  const least = cron !== undefined && missed >= MAX_COUNTED ? 'at least ' : ''
  const late =
    missed === 0
      ? ''
      : `; ${least}${missed} ${missed === 1 ? 'firing' : 'firings'} fell due while the host was not running`
  const then = next === undefined ? 'it has ended' : `next ${localText(next, timeZone)}`
  return `${message}\n\n(schedule ${id}, due ${localText(due, timeZone)}${late}; ${then})`
}

export const refusalText = (subagent: string, goal: string, why: string): string =>
  `The scheduled task was not launched (${subagent}: ${oneLine(goal)}): ${why}`

export const scheduleLines = (listed: readonly ScheduleInfo[]): string =>
  listed.length === 0 ? 'Nothing is scheduled.' : boundLines(listed.map(lineOf), LIST_CHARS)

function lineOf({ id, next, every, cron, timeZone, message = '', launch, ...counts }: ScheduleInfo): string {
  const { missedFirings: missed, skippedFirings: skipped } = counts
  const rule = every !== undefined ? `every ${every / 1000} s` : cron === undefined ? 'once' : `cron ${cron}`
  const what = launch === undefined ? `message: ${oneLine(message)}` : `${launch.subagent}: ${oneLine(launch.goal)}`
  const lost = `${missed > 0 ? `, ${missed} missed` : ''}${skipped > 0 ? `, ${skipped} skipped` : ''}`
  return toOneLine(`${id} (${rule}${lost}), next ${localText(next, timeZone)} - ${what}`)
}

/** Returns the id that equals `named`, or else the only id that begins with it. */
export function findSchedule(listed: readonly ScheduleInfo[], named = ''): string | undefined {
  const [first, second] = named === '' ? [] : listed.filter(({ id }) => id.startsWith(named))
  return listed.find(({ id }) => id === named)?.id ?? (second === undefined ? first?.id : undefined)
}

export const noSchedule = (named = ''): string =>
  toOneLine(
    `Expected the ID of one schedule. No schedule, or more than one, has an ID that begins with '${oneLine(named)}'.`,
  )

const oneLine = (text: string): string => previewText(text.trim().replace(/\s+/g, ' '), 60)
