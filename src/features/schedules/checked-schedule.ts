/** Validates a new schedule. */
import type { z } from 'zod'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InvalidInputError } from '../../errors.js'
import { jsonBytes } from '../../data/json-size.js'
import { toWholePlainData } from '../../data/plain-data.js'
import { fromParams, toParams } from '../../protocol/run-fields.js'
import { systemTimeZone, type ScheduleInfo, type scheduleInputSchema } from '../../protocol/schedules.js'
import { firstMatch, readTime } from './schedule-times.js'

type Fields = z.output<ReturnType<typeof scheduleInputSchema>>

export type ScheduledLaunch = NonNullable<ScheduleInfo['launch']>

/** The maximum size of each field that a schedule gives its runs besides the goal, in bytes of JSON. */
const MAX_FIELD_BYTES = 4000

/**
 * Validates a schedule. Returns its stored form, with the time at which it fires first.
 * @throws INVALID_INPUT for an invalid field
 * @throws AgentTasksError `PACKAGES_MISSING` if the rule needs the package `croner`
 */
export function checkSchedule(input: Fields, now: number, minPeriodMs: number): Omit<ScheduleInfo, 'id' | 'owner'> {
  const { at: _at, owner: _owner, timeZone: zone, missed = 'once', overlap = 'skip', launch, ...kept } = input
  oneOf(input, ['in', 'at', 'every', 'cron'])
  oneOf(input, ['message', 'launch'])
  const timeZone = zone ?? systemTimeZone()
  const next = firstTime(input, timeZone, now, minPeriodMs)
  const counts = { fired: 0, missedFirings: 0, skippedFirings: 0 }
  return {
    ...kept,
    ...omitUndefined({ launch: launch && copyOf(launch) }),
    next,
    timeZone,
    missed,
    overlap,
    ...counts,
  }
}

function oneOf(input: Fields, names: readonly (keyof Fields)[]): void {
  const given = names.filter((name) => input[name] !== undefined)
  if (given.length !== 1) throw new InvalidInputError('input', given, `exactly one of ${names.join(', ')}`)
}

function firstTime(
  { in: wait, at, every, cron, timeZone: zone }: Fields,
  timeZone: string,
  now: number,
  least: number,
): number {
  if (wait !== undefined) return now + wait
  if (at !== undefined) return readTime(at, zone, now)
  if (every === undefined) return firstMatch({ cron, timeZone }, now)
  if (every >= least) return now + every
  throw new InvalidInputError('input.every', every, `at least ${least} ms, the minimum period of schedules`)
}

function copyOf({ subagent, goal, timeoutMs, ...fields }: NonNullable<Fields['launch']>): ScheduledLaunch {
  const params = Object.entries(toParams(fields) ?? {}).map(([name, value]) => {
    const { value: plain } = toWholePlainData({ value }) ?? {}
    if (plain !== undefined && jsonBytes(plain, MAX_FIELD_BYTES) <= MAX_FIELD_BYTES) return [name, plain] as const
    const [field = name] = Object.keys(fromParams({ [name]: value }))
    throw new InvalidInputError(`input.launch.${field}`, value, `at most ${MAX_FIELD_BYTES} bytes of JSON`)
  })
  return { subagent, goal, ...omitUndefined({ timeoutMs }), ...fromParams(Object.fromEntries(params)) }
}
