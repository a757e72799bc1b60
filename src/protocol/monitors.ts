/** The input of `monitor`, and what a store keeps of a monitor. */
import { z } from 'zod'
import { lazily } from './lazily.js'
import { strictObject } from './strict-object.js'

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

/** @param most the highest number of events and of seconds */
export const monitorInputSchema = ({ maxEvents, maxSeconds }: { maxEvents: number; maxSeconds: number }) => {
  const seconds = z.number().positive().max(maxSeconds)
  return strictObject({
    taskId: z.string().min(1).max(512).optional(),
    file: z.string().min(1).max(1024).optional(),
    /**
     * Which lines are reported: those with a text, with one of several texts, or with a match of a regular expression (which needs the package
     * `re2js`). Lines are searched without codes of terminals, and in their first 4096 characters.
     */
    match: match(),
    /** How many events end it. Default: `monitors.maxEvents`. */
    maxEvents: z.int().min(1).max(maxEvents).default(maxEvents),
    /** The time without new output after which it ends, in seconds. Default: no limit. */
    idleSeconds: seconds.optional(),
    /** How long it runs, in seconds. Default: 300, or `monitors.maxSeconds` if that is less. */
    seconds: seconds.default(Math.min(300, maxSeconds)),
    /** What it is for: its events say it. Default: nothing. */
    description: z.string().max(100).optional(),
    /** Whom it wakes. Default: `main`. */
    owner: z.string().min(1).max(520).default('main'),
  }).refine(({ taskId, file }) => (taskId === undefined) !== (file === undefined), 'either taskId or file')
}

/**
 * What a monitor looks for, and for how long.
 * @useDeclaredType
 */
export type MonitorOptions = Omit<z.input<ReturnType<typeof monitorInputSchema>>, 'taskId' | 'file'>

export const storedMonitorSchema = lazily(() =>
  z.object({
    input: monitorInputSchema({ maxEvents: Number.MAX_SAFE_INTEGER, maxSeconds: Number.MAX_SAFE_INTEGER }),
    startedAt: z.number(),
    events: z.int().min(0),
    /** The file, and the first byte that it has not read. */
    position: z.int().min(0),
    inode: z.string().optional(),
    /** The run of its task that has written what it has read. */
    attempt: z.int().optional(),
    /** Whether it ends its task with itself. */
    isOwn: z.boolean().optional(),
  }),
)

export type StoredMonitor = z.output<ReturnType<typeof storedMonitorSchema>>
