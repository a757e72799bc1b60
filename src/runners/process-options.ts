/** What a process runner can be told, checked where it comes in. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { TaskProgress } from '../../machines/records.js'
import { systemClock, type Clock } from '../clock.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'
import { parseInput } from '../protocol/parse.js'
import type { OutputFormat, ParseFunction } from './output-parsers.js'

/** How long a program may take to end after it was asked to, in ms. */
const DEFAULT_PROCESS_GRACE_MS = 5000

/** How much of a program's stdout is kept for `parse`, in bytes (8 MiB). */
const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024

/** What to run, and how to read what it prints. */
export interface ProcessRunnerOptions {
  /** The program: a name that is looked up in PATH, or a path. Nothing is substituted in it. */
  readonly command: string
  /**
   * Its arguments, each handed over as it is: no shell is involved. `{goal}`, `{name}` and `{id}` are replaced by the
   * task's goal, subagent name and id. Where a program takes options, let `--` stand before `{goal}`.
   */
  readonly args?: readonly string[]
  /** The directory it runs in. Default: that of this process. */
  readonly cwd?: string
  /**
   * Added to this process's environment; a value that is undefined takes the variable away. The program also finds
   * `AGENT_TASK_ID` and `AGENT_TASK_NAME`, unless they are set here.
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How its stdout becomes the task's output. Default `text`. */
  readonly parse?: OutputFormat | ParseFunction
  /**
   * Reads the progress off a line of stdout; undefined says that the line tells none. What it throws counts as that.
   * Without it nothing is reported.
   */
  readonly progress?: (line: string) => number | TaskProgress | undefined
  /**
   * How much of its stdout is kept for `parse`, in bytes. Default 8388608 (8 MiB). Of more than that, `text` and
   * `json-last-line` read the end; for the others the program is stopped and the task fails.
   */
  readonly maxOutputBytes?: number
  /** How long after an abort its group is killed, in ms. Default 5000. */
  readonly graceMs?: number
  /** What an abort sends to its group first. Default `SIGTERM`. */
  readonly killSignal?: NodeJS.Signals
  /** Drives the grace. Default: the platform's. */
  readonly clock?: Clock
}

/** The options with every default filled in. */
export type ProcessSettings = z.output<ReturnType<typeof processOptionsSchema>>

const text = lazily(() => z.string().refine((value) => !value.includes('\0'), 'a string without null characters'))

// Where there are no programs there are no signals either, and `processRunner` says the first.
const isSignal = (value: unknown): boolean =>
  !isNode || Object.hasOwn(nodeBuiltin('node:os').constants.signals, value as string)

const isFunction = (value: unknown): boolean => typeof value === 'function'

const processOptionsSchema = lazily(() =>
  z.strictObject({
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
 * Checks the options and copies them, so that the caller may go on with theirs.
 * @throws InvalidInputError that names the field
 */
export function parseProcessOptions(options: ProcessRunnerOptions): ProcessSettings {
  return parseInput(processOptionsSchema(), options, 'options')
}
