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
     * Selects the reported lines: those that contain a text, or one of several texts, or that match a regular expression (which needs the package
     * `re2js`). Terminal codes are removed from lines, and only their first 4096 characters are searched.
     */
    match: match(),
    /** The number of events after which it ends. Default: `monitors.maxEvents`. */
    maxEvents: z.int().min(1).max(maxEvents).default(maxEvents),
    /** It ends after this time without new output, in seconds. Default: no limit. */
    idleSeconds: seconds.optional(),
    /** The time after which it ends, in seconds. Default: 300, or `monitors.maxSeconds` if that is less. */
    seconds: seconds.default(Math.min(300, maxSeconds)),
    /** Its purpose, for its events. Default: none. */
    description: z.string().max(100).optional(),
    /** The owner that receives its events. Default: `main`. */
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
    /** The file, and the first byte that it has not read. */
    position: z.int().min(0),
    inode: z.string().optional(),
    /** The run of its task that has written the read output. */
    attempt: z.int().optional(),
    /** Whether its task ends with it. */
    isOwn: z.boolean().optional(),
  }),
)

export type StoredMonitor = z.output<ReturnType<typeof storedMonitorSchema>>
