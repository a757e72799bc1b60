/** The input of schedules, their limits, and the form in which a store keeps them. */
import { z } from 'zod'
import { milliseconds, name, ownerName } from './async-tasks.js'
import { jsonObject } from './json-object.js'
import { lazily } from './lazily.js'
import { integerFrom, numberFrom, withDefault, type OptionTypes } from './option-checks.js'
import { fromParams, runFields } from './run-fields.js'
import { strictObject } from './strict-object.js'

/** Limits of schedules. See docs/schedules.md. */
export interface ScheduleOptions {
  /** The maximum number of schedules of one owner. Default 100. */
  readonly maxPerOwner?: number
  /** The minimum time between two firings of one schedule, in ms; 1000 or more. Default 10000. */
  readonly minPeriodMs?: number
}

const LEAST_PERIOD_MS = 1000

export const scheduleOptionTypes = {
  maxPerOwner: withDefault(integerFrom(0), 100),
  minPeriodMs: withDefault(numberFrom(LEAST_PERIOD_MS), 10_000),
} satisfies OptionTypes<ScheduleOptions>

/** How far ahead a firing may be, and the longest period, in ms: ten years. */
export const MAX_AHEAD_MS = 10 * 366 * 86_400_000

/** The maximum length of a message, and of a task's goal, in UTF-16 units. */
export const scheduledText = lazily(() => z.string().min(1).max(4000))

/** What happens to firings that were due while no host was running: `once` fires once for all of them, `skip` not at all. */
export const MISSED = ['once', 'skip'] as const
/** What happens to a firing while the task of an earlier firing still runs or waits: `skip` leaves the firing out, `allow` launches another task. */
export const OVERLAP = ['skip', 'allow'] as const

const duration = lazily(() => z.number().min(0).max(MAX_AHEAD_MS))
const zone = lazily(() => z.string().max(64).refine(isTimeZone, 'a time zone such as Europe/Berlin'))

/** Zones that were found to be valid, because each check makes a formatter, which is slow. */
const validZones = new Set<string>()
/** More than there are zones. A zone can also be written in many mixtures of small and capital letters. */
const MAX_VALID_ZONES = 1000

function isTimeZone(timeZone: string | undefined): timeZone is string {
  if (timeZone === undefined) return false
  if (validZones.has(timeZone)) return true
  try {
    new Intl.DateTimeFormat('en', { timeZone }).format(0)
  } catch {
    return false
  }
  if (validZones.size < MAX_VALID_ZONES) validZones.add(timeZone)
  return true
}

/** Returns the zone of the system; UTC if that has no name, for example with the environment variable `TZ=UTC+3`. */
export function systemTimeZone(): string {
  // Undefined for a zone without a name, in spite of its type.
  const timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined
  return isTimeZone(timeZone) ? timeZone : 'UTC'
}

const keptFields = lazily(() => ({
  /**
   * The name of the schedule among those of its owner. If the owner has a schedule with this key, no second one is created: an equal one goes on, and
   * another one is replaced.
   */
  key: name().optional(),
  /** The wait before the only firing, in ms. Excludes `at`, `every` and `cron`. */
  in: duration().optional(),
  /** The time between two firings, in ms. */
  every: duration().min(LEAST_PERIOD_MS).optional(),
  /**
   * A cron expression of five fields (minute, hour, day of the month, month, day of the week), or a name such as `@daily`. Needs the package
   * `croner`, version 11.
   */
  cron: z
    .string()
    .max(200)
    .regex(/^\s*(?:\S+\s+){4}\S+\s*$|^@[a-z]+$/i, 'a cron expression of five fields')
    .optional(),
  /** The message that is delivered to the owner at each firing. */
  message: scheduledText().optional(),
  /**
   * The task that each firing launches, in place of a message: the name of a subagent that `findRunner` knows, its goal, its deadline in ms, and
   * fields for its run, such as `context` (each at most 4000 bytes of JSON).
   */
  launch: strictObject({
    subagent: name(),
    goal: scheduledText(),
    timeoutMs: milliseconds().optional(),
    ...runFields(),
  }).optional(),
}))

/** The input of `schedule`. */
export const scheduleInputSchema = lazily(() =>
  strictObject({
    ...keptFields(),
    /** The time of the only firing: a date, an ISO time with an offset, or, together with `timeZone`, a local time such as `2027-03-28T09:00`. */
    at: z.union([z.string().max(64), z.date()]).optional(),
    /** The time zone of `cron`, of a local `at`, and of times in texts, such as `Europe/Berlin`. Default: the time zone of the system. */
    timeZone: zone().optional(),
    /** The owner that gets the message or owns the task. Default: `main`. */
    owner: ownerName().optional(),
    /** What happens to firings that were due while no host was running: `once`, the default, fires once for all of them; `skip` does not fire. */
    missed: z.enum(MISSED).optional(),
    /** What happens to a firing while the task of an earlier firing has not ended: `skip`, the default, leaves it out; `allow` launches another task. */
    overlap: z.enum(OVERLAP).optional(),
  }),
)

type Checked = z.input<ReturnType<typeof scheduleInputSchema>>
type Times = 'in' | 'at' | 'every' | 'cron'
type Actions = 'message' | 'launch'

/** Exactly one of some fields. */
type OneOf<Fields, Name extends keyof Fields> = Name extends unknown
  ? { readonly [One in Name]-?: NonNullable<Fields[One]> } & {
      readonly [Other in Exclude<keyof Fields, Name>]?: undefined
    }
  : never

/**
 * The input of `AsyncTaskManager.schedule`: one of `in`, `at`, `every` and `cron`, and one of `message` and `launch`.
 * @useDeclaredType
 */
export type ScheduleInput = Omit<Checked, Times | Actions> &
  OneOf<Pick<Checked, Times>, Times> &
  OneOf<Pick<Checked, Actions>, Actions>

const count = lazily(() => z.int().min(0))

/** A schedule that a store keeps. */
export const scheduleInfoSchema = lazily(() =>
  z.object({
    id: name(),
    owner: ownerName(),
    ...keptFields(),
    /** The task that each firing launches. */
    launch: z
      .object({
        subagent: name(),
        goal: scheduledText(),
        timeoutMs: milliseconds().optional(),
        params: jsonObject().optional(),
      })
      .transform(({ params, ...launch }) => ({ ...launch, ...fromParams(params) }))
      .optional(),
    /** The time of the next firing, in ms since the epoch. */
    next: z.number().min(0).max(8.64e15),
    timeZone: zone(),
    missed: z.enum(MISSED),
    overlap: z.enum(OVERLAP),
    /** How often the schedule has fired. */
    fired: count(),
    /** The number of firings that were due while no host was running. */
    missedFirings: count(),
    /** The number of firings that were skipped because the task of an earlier firing had not ended. */
    skippedFirings: count(),
    /** The id of the last task that the schedule launched. */
    lastTaskId: name().optional(),
  }),
)

/**
 * A schedule that has not ended.
 * @useDeclaredType
 */
export type ScheduleInfo = Readonly<z.output<ReturnType<typeof scheduleInfoSchema>>>
