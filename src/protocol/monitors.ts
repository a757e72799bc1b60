/** The limits of monitors, the input of `monitor`, and the part of a monitor that a store keeps. */
import { z } from 'zod'
import { lazily } from './lazily.js'
import { aName, integerFrom, listOf, numberFrom, withDefault, type OptionTypes } from './option-checks.js'
import { strictObject } from './strict-object.js'

/** Which files monitors may read, and how many monitors and events are allowed. See docs/monitors.md. */
export interface MonitorLimits {
  /** Files that may be read, and folders whose files may be read. A relative name in a monitor is resolved against the first entry. Default: none. */
  readonly files?: readonly string[]
  /** The maximum number of active monitors of an owner. Default 10. */
  readonly maxPerOwner?: number
  /** The maximum duration of a monitor, in seconds. Default 1800. */
  readonly maxSeconds?: number
  /** The maximum number of events of a monitor. Default 1000. */
  readonly maxEvents?: number
}

export const monitorLimitTypes = {
  files: withDefault(listOf(aName), []),
  maxPerOwner: withDefault(integerFrom(0), 10),
  maxSeconds: withDefault(numberFrom(1), 1800),
  maxEvents: withDefault(integerFrom(1), 1000),
} satisfies OptionTypes<MonitorLimits>

const text = lazily(() =>
  z
    .string()
    .min(1)
    .max(500)
    .refine((value) => !/[\r\n]/.test(value), 'a text without line breaks: each line is searched by itself'),
)

const regex = lazily(() =>
  strictObject({
    regex: text(),
    flags: z
      .string()
      .regex(/^(?!.*(.).*\1)[imsu]*$/, 'some of the flags i, m, s and u')
      .optional(),
  }),
)

const match = lazily(() =>
  z.union([
    text(),
    z.array(text()).min(1).max(10).readonly(),
    regex(),
    z
      .instanceof(RegExp)
      .transform(({ source, flags }): z.input<ReturnType<typeof regex>> => ({ regex: source, flags }))
      .pipe(regex()),
  ]),
)

/** @param options `maxEvents` and `maxSeconds` are the largest values that the input may have */
export const monitorInputSchema = ({ maxEvents, maxSeconds }: { maxEvents: number; maxSeconds: number }) => {
  const seconds = z.number().positive().max(maxSeconds)
  return strictObject({
    taskId: z.string().min(1).max(512).optional(),
    file: z.string().min(1).max(1024).optional(),
    /**
     * Selects the lines that are reported: lines that contain a text, or one of several texts, or that match a regular expression, which needs the
     * package `re2js`. Terminal codes are removed from lines. Only the first 4096 characters of a line are searched.
     */
    match: match(),
    /** The monitor ends after this number of events. Default: the option `monitors.maxEvents`. */
    maxEvents: z.int().min(1).max(maxEvents).default(maxEvents),
    /** The monitor ends after this time without new output, in seconds. Default: no limit. */
    idleSeconds: seconds.optional(),
    /** The monitor ends after this time, in seconds. Default: 300, or the option `monitors.maxSeconds` if that is less. */
    seconds: seconds.default(Math.min(300, maxSeconds)),
    /** The purpose of the monitor, shown with its events. Default: none. */
    description: z.string().max(100).optional(),
    /**
     * The name of the monitor among those of its owner. If the owner has a monitor with this key, no second one is started: an equal one goes on, and
     * another one is replaced. Not for a monitor of a program, which ends with the process.
     */
    key: z.string().min(1).max(512).optional(),
    /** The owner that receives the events. Default: `main`. */
    owner: z.string().min(1).max(520).default('main'),
  }).refine(({ taskId, file }) => (taskId === undefined) !== (file === undefined), 'either taskId or file')
}

/** What a monitor looks for, and its limits. */
export type MonitorOptions = Omit<z.input<ReturnType<typeof monitorInputSchema>>, 'taskId' | 'file'>

export const storedMonitorSchema = lazily(() =>
  z.object({
    input: monitorInputSchema({ maxEvents: Number.MAX_SAFE_INTEGER, maxSeconds: Number.MAX_SAFE_INTEGER }),
    startedAt: z.number(),
    events: z.int().min(0),
    /** The position in the file of the first byte that the monitor has not read. */
    position: z.int().min(0),
    inode: z.string().optional(),
    /** The number of the task's run that has written the output. */
    attempt: z.int().optional(),
    /** Whether the task belongs to the monitor, and ends with it. */
    isOwn: z.boolean().optional(),
  }),
)

export type StoredMonitor = z.output<ReturnType<typeof storedMonitorSchema>>
