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

/** How much of stdout is kept for `parse`, in bytes. */
const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024

/** The program to run, and how to parse its output. */
export interface ProcessRunnerOptions {
  /** The program: a path, or a name to look up in PATH. Placeholders are not replaced here. */
  readonly command: string
  /**
   * Its arguments. No shell is involved. `{goal}`, `{name}` and `{id}` are replaced by the task's goal, subagent name and id. If the program takes
   * options, put `--` before `{goal}`.
   */
  readonly args?: readonly string[]
  /** Its working directory. Default: that of this process. */
  readonly cwd?: string
  /**
   * Variables to add to the environment of this process; `undefined` removes a variable. `AGENT_TASK_ID` and `AGENT_TASK_NAME` are set unless given
   * here. With telemetry, `TRACEPARENT` and `TRACESTATE` are set as well.
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How to parse its stdout. Default `text`. */
  readonly parse?: OutputFormat | ParseFunction
  /** Reads progress from a line of stdout. Returns undefined for a line without progress; so does an exception. Default: no progress is reported. */
  readonly progress?: (line: string) => number | TaskProgress | undefined
  /**
   * How much of stdout is kept for `parse`, in bytes. If there is more, `text` and `json-last-line` use the end; other formats stop the program and
   * fail the task. Default 8388608 (8 MiB).
   */
  readonly maxOutputBytes?: number
  /**
   * Whether the program continues when its host dies, and the next host follows it to its end. The task must be in a store with a folder
   * (`sqliteStore`). The output is kept in files, up to `maxOutputBytes` at the beginning and at the end. Not on Windows. Default false.
   */
  readonly survivesHost?: boolean
  /**
   * With `messages`, messages to the task (`sendToTask`) are written to stdin, each followed by a line break. Stdin is closed when the task ends. Not
   * with `survivesHost`. Default `none`: stdin is empty.
   */
  readonly stdin?: 'none' | 'messages'
  /**
   * Whether it may ask questions, over the socket named by `AGENT_TASK_SOCKET` (`agent-tasks ask`). The socket ends with the run or this process. Not
   * on Windows. Default false.
   */
  readonly questions?: boolean
  /**
   * How to continue its tasks, in the folder of the session. `from`: where stdout contains the session id, `json:session_id` for a single JSON value
   * or `jsonl:thread.started/thread_id` for the lines with this `type`. A nested field is `outer.inner`. `resume`: all arguments for the
   * continuation, with `{session}` and `{message}`. `result`: where the text of its result is (default: as for `parse`). Default: its tasks cannot be
   * continued.
   */
  readonly session?: { readonly from: string; readonly resume: readonly string[]; readonly result?: string | undefined }
  /**
   * With `worktree`, it runs in its own git worktree, at HEAD of the repository of `cwd` and on branch `agent-tasks/<id>`. Retries use the same
   * worktree. At the end the worktree and branch are removed if nothing has changed; otherwise they are kept, and `worktree` of the output has their
   * names. Needs git 2.36. Default `none`.
   */
  readonly isolation?: 'none' | 'worktree'
  /** Which worktrees are kept: those with `changes`, or all (`always`). Default `changes`. */
  readonly keep?: 'changes' | 'always'
  /** How long after an abort its process group is killed, in ms. Default 5000. */
  readonly graceMs?: number
  /** The first signal that an abort sends to its process group. Default `SIGTERM`. */
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
 * @throws InvalidInputError that names the field
 */
export function parseProcessOptions(options: ProcessRunnerOptions): ProcessSettings {
  const schema = processOptionsSchema()
  checkOptionNames(options, Object.keys(schema.shape))
  return parseInput(schema, options, 'options')
}
