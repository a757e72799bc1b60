/** The options of a process runner and their validation. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { TaskProgress } from '../../machines/records.js'
import { systemClock, type Clock } from '../clock.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'
import { checkOptionNames } from '../protocol/option-checks.js'
import { parseInput } from '../protocol/parse.js'
import type { OutputFormat, ParseFunction } from './output-parsers.js'
import { strictObject } from '../protocol/strict-object.js'
import { programSessionSchema } from '../protocol/program-session.js'

/** How long a program may take to end after an abort, in ms. */
const DEFAULT_PROCESS_GRACE_MS = 5000

/** How much of a program's stdout is kept for `parse`, in bytes (8 MiB). */
const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024

/** Which program to run, and how to read its output. */
export interface ProcessRunnerOptions {
  /** The program: a path, or a name that is looked up in PATH. Nothing is substituted in it. */
  readonly command: string
  /**
   * Its arguments. No shell is involved. `{goal}`, `{name}` and `{id}` are replaced by the task's goal, subagent name and id. If
   * the program takes options, put `--` before `{goal}`.
   */
  readonly args?: readonly string[]
  /** Its working directory. Default: that of this process. */
  readonly cwd?: string
  /**
   * Variables to add to this process's environment; `undefined` removes a variable. `AGENT_TASK_ID` and `AGENT_TASK_NAME` are set,
   * unless they are given here, and with telemetry `TRACEPARENT` and `TRACESTATE`.
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How its stdout is turned into the task's output. Default `text`. */
  readonly parse?: OutputFormat | ParseFunction
  /**
   * Reads progress from a line of stdout; returns undefined for a line without progress. An exception counts as undefined. Default:
   * no progress is reported.
   */
  readonly progress?: (line: string) => number | TaskProgress | undefined
  /**
   * How much of its stdout is kept for `parse`, in bytes. Default 8388608 (8 MiB). When there is more, `text` and `json-last-line`
   * read the end; the others stop the program and fail the task.
   */
  readonly maxOutputBytes?: number
  /**
   * Whether the program goes on when its host dies, and the next host follows it to its end. Its task must be in a store with a folder
   * (`sqliteStore`). Its output is kept in files, of which `maxOutputBytes` bounds each end. Not on Windows. Default false.
   */
  readonly survivesHost?: boolean
  /**
   * `messages`: the messages to the task (`sendToTask`) are written to its stdin, each with a line break at its end; its stdin is closed at the
   * end of the task alone. Not with `survivesHost`. Default `none`: its stdin is empty.
   */
  readonly stdin?: 'none' | 'messages'
  /**
   * Whether it may ask questions, over the socket that `AGENT_TASK_SOCKET` names (`agent-tasks ask`). The socket ends with the run, and with this
   * process. Not on Windows. Default false.
   */
  readonly questions?: boolean
  /**
   * How its tasks are continued, in the folder of the session. `from`: where the id of its session is in its stdout, `json:session_id` of the one JSON value or
   * `jsonl:thread.started/thread_id` of the lines with this `type`; a field inside another one is `outer.inner`. `resume`: all its arguments then, with `{session}`
   * and `{message}`. `result`: where the text of its result is (default: as `parse` says). Default: they cannot be continued.
   */
  readonly session?: { readonly from: string; readonly resume: readonly string[]; readonly result?: string | undefined }
  /**
   * `worktree`: it runs in a git worktree of its own, at HEAD of the repository of `cwd` and on the branch `agent-tasks/<id>`, which its retries use
   * again. At the end both are removed if nothing has changed; otherwise they are kept, and `worktree` of the output says where. Needs git 2.36.
   * Default `none`.
   */
  readonly isolation?: 'none' | 'worktree'
  /** With a worktree: which are kept, those with `changes` or all (`always`). Default `changes`. */
  readonly keep?: 'changes' | 'always'
  /** How long after an abort its process group is killed, in ms. Default 5000. */
  readonly graceMs?: number
  /** The signal that an abort sends to its process group first. Default `SIGTERM`. */
  readonly killSignal?: NodeJS.Signals
  /** Times the grace period. Default: the platform's clock. */
  readonly clock?: Clock
}

/** The options with their defaults. */
export type ProcessSettings = z.output<ReturnType<typeof processOptionsSchema>>

const text = lazily(() => z.string().refine((value) => !value.includes('\0'), 'a string without null characters'))

// Outside Node there are no signal names to check; `processRunner` throws there.
const isSignal = (value: unknown): boolean =>
  !isNode || Object.hasOwn(nodeBuiltin('node:os').constants.signals, value as string)

const isFunction = (value: unknown): boolean => typeof value === 'function'

const processOptionsSchema = lazily(() =>
  strictObject({
    command: text().min(1),
    args: z.array(text()).default([]),
    cwd: text().min(1).optional(),
    env: z.record(z.string(), text().optional()).default({}),
    parse: z
      .custom<OutputFormat | ParseFunction>(
        (value) => isFunction(value) || ['text', 'json', 'json-last-line'].includes(value as string),
        "'text', 'json', 'json-last-line' or a function",
      )
      .default('text'),
    progress: z.custom<NonNullable<ProcessRunnerOptions['progress']>>(isFunction, 'a function').optional(),
    maxOutputBytes: z.int().min(1).default(DEFAULT_MAX_OUTPUT_BYTES),
    survivesHost: z.boolean().default(false),
    stdin: z.enum(['none', 'messages']).default('none'),
    questions: z.boolean().default(false),
    session: programSessionSchema().optional(),
    isolation: z.enum(['none', 'worktree']).default('none'),
    keep: z.enum(['changes', 'always']).default('changes'),
    graceMs: z.number().min(0).default(DEFAULT_PROCESS_GRACE_MS),
    killSignal: z.custom<NodeJS.Signals>(isSignal, "a signal, as in 'SIGTERM'").default('SIGTERM'),
    clock: z
      .custom<Clock>((value) => {
        const { now, setTimeout, clearTimeout } = (value ?? {}) as Partial<Record<keyof Clock, unknown>>
        return [now, setTimeout, clearTimeout].every(isFunction)
      }, 'a clock: { now, setTimeout, clearTimeout }')
      .default(systemClock),
  }),
)

/**
 * Validates and copies the options.
 * @throws InvalidInputError with the name of the field
 */
export function parseProcessOptions(options: ProcessRunnerOptions): ProcessSettings {
  const schema = processOptionsSchema()
  checkOptionNames(options, Object.keys(schema.shape))
  return parseInput(schema, options, 'options')
}
