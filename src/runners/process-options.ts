/** The options of a process runner and their validation. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { TaskProgress } from '../../machines/records.js'
import { systemClock, type Clock } from '../system/clock.js'
import { isNode, nodeBuiltin } from '../system/node-builtins.js'
import { checkOptionNames } from '../protocol/option-checks.js'
import { parseInput } from '../protocol/parse.js'
import type { OutputFormat, ParseFunction } from './output-parsers.js'
import { strictObject } from '../protocol/strict-object.js'
import {
  ACCESS_LEVELS,
  agentPresetSchema,
  type AgentPreset,
  type AgentPresetData,
} from '../protocol/agents/agent-preset.js'
import { AGENT_NAMES, AGENT_PRESETS, type AgentName } from '../protocol/agents/presets.js'
import { programSessionSchema } from '../protocol/program-session.js'
import { InvalidInputError } from '../errors.js'
import { presetArguments } from './agents/preset-options.js'

/** How long a program may run after an abort before it is killed, in ms. It is shorter than the grace period of a task, which then ends after its program. */
const DEFAULT_PROCESS_GRACE_MS = 4000

/** How much of stdout is kept for `parse`, in bytes. */
const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 * 1024

/** The program to run, and how to parse its output. */
export interface ProcessRunnerOptions {
  /** The program: a path, or a name to look up in PATH. Placeholders such as `{goal}` are replaced only in `args`, not here. */
  readonly command: string
  /**
   * The arguments of the program. No shell is involved. Placeholders are replaced: `{goal}` by the goal of the task, with the instructions, tools,
   * expected outputs and context of the launch below it; `{goal:file}` by the path of a private file with the same text; `{results}` by the results of the tasks in `after`, which otherwise follow the goal; `{name}` by
   * the name of its subagent; and `{id}` by its id. If the program takes options, put `--` before `{goal}`, so that a goal that begins with `-` is not
   * read as an option.
   */
  readonly args?: readonly string[]
  /**
   * The coding agent that `command` is: the name of a preset, or a preset for an agent of your own. The preset has the arguments, and says where the
   * output has the result, the reason of a failure, the session and the usage. `args` are further arguments then. Cannot be combined with `parse` and
   * `session`. Default: the program is no agent.
   */
  readonly agent?: AgentName | AgentPreset
  /**
   * What the agent may do, by its own options: `read`, `write` (also change files of its folder) or `full` (everything that its user may do). What it
   * was denied is in the field `denied` of the output. Needs `agent`. Default `read`.
   */
  readonly access?: (typeof ACCESS_LEVELS)[number]
  /** Whether the agent may work in a folder that it would refuse, because it is not trusted or in no git repository. Needs `agent`. Default false. */
  readonly trust?: boolean
  /** The working directory of the program, unless the launch names one. Default: that of this process. */
  readonly cwd?: string
  /**
   * Variables to add to the environment of this process; `undefined` removes a variable. `AGENT_TASK_ID` and `AGENT_TASK_NAME` are also set, unless you
   * set them here. With telemetry, `TRACEPARENT` and `TRACESTATE` are set, too. For a task with `after`, `AGENT_TASK_RESULTS` is the path of a file that
   * only this user can read: the results of those tasks, as a JSON object by their ids.
   */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How to parse the stdout of the program. Default `text`. */
  readonly parse?: OutputFormat | ParseFunction
  /** Reads progress from a line of stdout. For a line without progress, the function returns undefined or throws. Default: no progress is reported. */
  readonly progress?: (line: string) => number | TaskProgress | undefined
  /**
   * How much of stdout is kept for `parse`, in bytes. If a program prints more, `text` and `json-last-line` parse the last part. With `json` or a
   * function, the program is stopped and the task fails. Default 8388608 (8 MiB).
   */
  readonly maxOutputBytes?: number
  /**
   * Whether the program continues when its host dies. The next host then follows the program to its end. This needs a store with a folder
   * (`sqliteStore`). The output is kept in files: at most `maxOutputBytes` of its beginning, and as much of its end. Not on Windows. Default false.
   */
  readonly survivesHost?: boolean
  /**
   * What the program reads from stdin. With `goal`, it is what `{goal}` stands for, which may then be longer than an argument (128 KiB on Linux); of the
   * arguments of an agent, those with the goal are left out. With `messages`, the messages that `sendToTask` sends to the task are written to stdin, each
   * followed by a line break, until the task ends; cannot be combined with `survivesHost`. Default `none`: stdin is empty, except that an agent whose goal
   * is too long for an argument gets it as with `goal`.
   */
  readonly stdin?: 'none' | 'goal' | 'messages'
  /**
   * Whether the program may ask questions with `agent-tasks ask`. It uses a socket, whose path is in the variable `AGENT_TASK_SOCKET`. The socket is
   * closed when the run or this process ends. Not on Windows. Default false.
   */
  readonly questions?: boolean
  /**
   * How tasks of this program are continued, in the folder where the earlier task ran. Default: they cannot be continued.
   *
   * - `from`: where stdout contains the id of the session. `json:session_id` is a field of a single JSON value. `jsonl:thread.started/thread_id` is a
   * field of the lines of JSON whose `type` is `thread.started`. A nested field is written `outer.inner`.
   * - `resume`: all arguments of the program when it continues a task, with the placeholders `{session}` and `{message}`.
   * - `result`: where stdout contains the text of the result, written as for `from`. Default: `parse` reads the result.
   */
  readonly session?: { readonly from: string; readonly resume: readonly string[]; readonly result?: string | undefined }
  /**
   * With `worktree`, the program runs in a git worktree of its own, which starts at HEAD of the repository of `cwd`, on the branch `agent-tasks/<id>`.
   * Retries use the same worktree. When the task ends without changes, its worktree and branch are removed. Otherwise they are kept, and the field
   * `worktree` of the output names them. Needs git 2.36. Default `none`.
   */
  readonly isolation?: 'none' | 'worktree'
  /** Which worktrees are kept when their task ends: those with `changes`, or all of them (`always`). Default `changes`. */
  readonly keep?: 'changes' | 'always'
  /**
   * Whether processes that have left the process group of the program, such as daemons, are ended when the program has ended by itself. They are ended
   * in any case when the run is cancelled, exceeds its deadline or loses its host. Otherwise they run on, and the field `detached_processes` of the
   * output names them. Processes are found by the variable `AGENT_TASKS_RUN` of their environment; only on Linux. Default: true with `session`, because
   * the program is an agent then, otherwise false.
   */
  readonly endDetached?: boolean
  /** How long after an abort the processes of the run are killed, in ms. Default 4000. */
  readonly graceMs?: number
  /** The first signal that an abort sends to the processes of the run. Default `SIGTERM`. */
  readonly killSignal?: NodeJS.Signals
  /** The clock that measures the grace period. Default: the platform's clock. */
  readonly clock?: Clock
}

export type ProcessSettings = Omit<z.output<ReturnType<typeof processOptionsSchema>>, 'agent' | 'access' | 'trust'> & {
  readonly endDetached: boolean
  /** What is known about the output of the program. Absent if it is no agent. */
  readonly preset?: AgentPresetData
  /** Called with the names of the processes that an ended program has detached, and that run on. */
  readonly onDetached?: (names: readonly string[]) => void
}

const text = lazily(() => z.string().refine((value) => !value.includes('\0'), 'a string without null characters'))

// Outside Node there are no signal names to check. `processRunner` throws there in any case.
const isSignal = (value: unknown): boolean =>
  !isNode || Object.hasOwn(nodeBuiltin('node:os').constants.signals, value as string)

const isFunction = (value: unknown): boolean => typeof value === 'function'

const AGENT_EXPECTED = `'${AGENT_NAMES.join("', '")}' or a preset`

const processOptionsSchema = lazily(() =>
  strictObject({
    command: text().min(1),
    args: z.array(text()).default([]),
    agent: z.union([z.enum(AGENT_NAMES), agentPresetSchema()], AGENT_EXPECTED).optional(),
    access: z.enum(ACCESS_LEVELS).optional(),
    trust: z.boolean().optional(),
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
    stdin: z.enum(['none', 'goal', 'messages']).default('none'),
    questions: z.boolean().default(false),
    session: programSessionSchema().optional(),
    isolation: z.enum(['none', 'worktree']).default('none'),
    keep: z.enum(['changes', 'always']).default('changes'),
    endDetached: z.boolean().optional(),
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
 * @throws INVALID_INPUT with the name of the option
 */
export function parseProcessOptions(options: ProcessRunnerOptions): ProcessSettings {
  const schema = processOptionsSchema()
  checkOptionNames(options, Object.keys(schema.shape))
  const { agent, access, trust, ...settings } = parseInput(schema, options, 'options')
  if (agent === undefined) {
    for (const [name, value] of Object.entries({ access, trust })) {
      if (value !== undefined) throw new InvalidInputError(`options.${name}`, value, 'no value without `agent`')
    }
    return { ...settings, endDetached: settings.endDetached ?? settings.session !== undefined }
  }
  for (const name of ['parse', 'session'] as const) {
    if (options[name] === undefined) continue
    throw new InvalidInputError(`options.${name}`, options[name], 'no value beside `agent`')
  }
  const preset = typeof agent === 'string' ? agentPresetSchema().parse(AGENT_PRESETS[agent]) : agent
  const choices = { access: access ?? 'read', trust: trust ?? false, args: settings.args }
  const resume = presetArguments(preset.resume, preset, choices)
  return {
    ...settings,
    env: { ...preset.accessEnv?.[choices.access], ...settings.env },
    args: presetArguments(preset.start, preset, choices),
    session: { from: preset.session, resume, result: preset.result },
    preset,
    endDetached: settings.endDetached ?? true,
  }
}
