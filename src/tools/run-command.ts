/** The tool run_command: runs a program as a command, and returns its output or leaves it running in the background. */
import { z } from 'zod'
import { givenManager } from '../async-tasks/given-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { boundLines, previewText } from '../features/output/bounded-text.js'
import { commandLine } from '../async-tasks/command-line.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { ResolvedRunner, RunFunction } from '../engine/runner.js'
import { TaskLimitError } from '../errors.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { lazily } from '../protocol/lazily.js'
import { checkOptions, optionsOf, required, type OptionTypes } from '../protocol/option-checks.js'
import { literalRunner } from '../runners/process-runner.js'
import {
  allowedCommand,
  checkCommandPolicy,
  commandPolicyTypes,
  namesOf,
  programPath,
  type AllowedCommand,
  type CommandPolicy,
} from './command-policy.js'
import { backgroundAfterSchema, earlierOf } from './background-after.js'
import { afterFields, keyField, readWaits } from './task-after.js'
import { backgroundResultOf, refusedInPlace, runInPlace, type TaskCall } from './task-runs.js'
import {
  limitsText,
  timeoutPolicy,
  timeoutSecondsSchema,
  withTimeoutText,
  type TimeoutSettings,
} from './task-timeout.js'
import {
  launchOptionTypes,
  readLaunchOptions,
  type AsyncTaskToolOptions,
  type FollowUps,
  type ForegroundOptions,
} from './task-tool-options.js'
import { untilStored } from './stored-launch.js'
import type { HostTool } from './tool-descriptor.js'
import { clampedFields, launchedFields, outputOf } from './tool-output.js'
import { defineTool, errorResult, validationError, type Tool, type ToolResult } from './tool.js'
import { strictObject } from '../protocol/strict-object.js'

const MAX_ARGS = 1000

const text = lazily(() => z.string().refine((value) => !value.includes('\0'), 'text without null characters'))

export const runCommandSchema = lazily(() =>
  strictObject({
    /** The program, or the command line for a shell. */
    command: text().min(1),
    /** The arguments of the program. */
    args: z.array(text()).max(MAX_ARGS).optional(),
    /** The folder to run in. */
    cwd: text().optional(),
    /** Environment variables to set. */
    env: z.record(text(), text()).optional(),
    timeout_seconds: timeoutSecondsSchema(),
    background_after_seconds: backgroundAfterSchema(),
    /** Whether to run the command in the background. */
    async: z.boolean().optional(),
    /** Tasks that must end before the command starts. Only with `async: true`. */
    after: afterFields().after.describe('With async: true: IDs of tasks that must end first.'),
    /** What happens when one of these tasks fails: the command fails too, or runs. */
    on_failed_dependency: afterFields().on_failed_dependency.describe(''),
    /** A key. Commands and tasks with the same key run one at a time. */
    concurrency_key: keyField().describe('One at a time with this key.'),
  }),
)

/** The schema without `args`, for a shell. */
const shellSchema = lazily(() =>
  runCommandSchema()
    .omit({ args: true })
    .extend({ command: text().min(1).describe('The command line.') }),
)

/**
 * The parameters of the tool `run_command`. With a shell there are no `args`.
 * @useDeclaredType
 */
export type RunCommandParams = z.input<ReturnType<typeof runCommandSchema>>

/** Options of `createRunCommandTool`. */
export interface RunCommandOptions extends AsyncTaskToolOptions, TimeoutSettings, ForegroundOptions {
  /** The programs that may be started. */
  readonly commands: CommandPolicy
  /** The owner of the tasks: the results of background tasks are delivered to it. Default `main`. */
  readonly owner?: string
}

const optionTypes: OptionTypes<RunCommandOptions> = {
  ...launchOptionTypes,
  commands: required(optionsOf(commandPolicyTypes)),
}

const NAME = 'run_command'

const BACKGROUND_NOTE = ' Its line ends in "&": it runs as with async: true.'

/** After a stop: how long the program may take to end, and after which time the call returns, in ms. */
const STOP_MS = { program: 4000, task: 5000 } as const

/** The maximum size of the stdout in a command's result, in bytes (1 MiB). */
const MAX_OUTPUT_BYTES = 1024 * 1024

/** The maximum length of the command in the goal of its task, in characters. */
const GOAL_CHARS = 2000

/** The maximum length of the list of programs in the description of the tool, in characters. */
const LIST_CHARS = 1000

/**
 * Creates the tool `run_command`. Every command takes a slot of `maxCommands` of the manager until its program has ended, even if its call waits for it.
 * @param options the manager, the programs that may be started, and limits
 * @returns the tool
 * @throws INVALID_SETTING for a timeout or `maxMessageChars` out of its range
 * @throws INVALID_INPUT for an unknown or invalid option
 */
export function createRunCommandTool(options: RunCommandOptions): Tool<ReturnType<typeof runCommandSchema>> {
  checkOptions(options, optionTypes)
  const { commands } = options
  checkCommandPolicy(commands, 'options.commands')
  const { defaultTimeoutSeconds, maxTimeoutSeconds } = commands
  const timeouts: TimeoutSettings = {
    ...options,
    ...omitUndefined({ defaultTimeoutSeconds, maxTimeoutSeconds }),
  }
  // Programs in the background, such as servers and watchers, run until they are stopped, so they have no default deadline.
  const inBackground: TimeoutSettings = {
    defaultTimeoutSeconds: defaultTimeoutSeconds ?? -1,
    maxTimeoutSeconds: maxTimeoutSeconds ?? -1,
  }
  const timeoutOf = { inPlace: timeoutPolicy(timeouts), inBackground: timeoutPolicy(inBackground) }
  const { inputOf, ...shared } = readLaunchOptions(options)
  // With a shell, the schema has no `args`.
  const schema = (commands.shell === true ? shellSchema() : runCommandSchema()) as ReturnType<typeof runCommandSchema>
  const description = descriptionOf(commands)
  return defineTool({
    name: NAME,
    description,
    inputSchema: schema,
    listed: () => {
      const more = ` With async: true: ${limitsText(inBackground)}`
      return { description, inputSchema: withTimeoutText(schema, timeouts, more) }
    },
    describe: ({ command, args = [], async: isAsync }) => {
      const { line, isBackground } =
        commands.shell === true ? readLine(command) : { line: commandLine([command, ...args]) }
      return `Run${isAsync === true || isBackground === true ? ' in the background' : ''}: ${previewText(line, 200)}`
    },
    run: async (params, context) => {
      const { async: asked = false, timeout_seconds, background_after_seconds } = params
      const { line: command, isBackground } =
        commands.shell === true ? readLine(params.command) : { line: params.command, isBackground: false }
      const isAsync = asked || isBackground
      const allowed = allowedCommand(commands, { ...params, command })
      if ('expected' in allowed) return validationError(NAME, allowed.field, allowed.received, allowed.expected)
      const timeout = timeoutOf[isAsync ? 'inBackground' : 'inPlace'](timeout_seconds)
      const manager = givenManager(options)
      const waits = readWaits(params, { tool: NAME, manager, owner: options.owner, isAsync })
      if ('refusal' in waits) return waits.refusal
      const call: TaskCall = {
        manager,
        input: { ...commandInput(commands, allowed), ...inputOf(timeout), ...waits.input },
        timeout,
        context,
        ...shared,
        backgroundAfterSeconds: earlierOf(shared.backgroundAfterSeconds, background_after_seconds),
      }
      try {
        const runner = commandRunner(allowed, manager)
        if (!isAsync) return await runInPlace(call, runner)
        const task = manager.launch(call.input, runner)
        context.onLaunched?.(task.id)
        await untilStored(manager, task.id)
        const what = `command ${previewText(call.input.goalPrompt, 200)} (ID: ${task.id}).${isBackground && !asked ? BACKGROUND_NOTE : ''}`
        return backgroundResultOf(call, task, what)
      } catch (error) {
        if (error instanceof TaskLimitError) return limitRefusal(manager, shared.followUps, call.input, error)
        return refusedInPlace(error)
      }
    },
  })
}

/**
 * Reads a command line. If the line ends in `&`, the `&` is removed and the line runs as a background task. A shell would run it and exit, so the
 * program would be lost.
 */
export function readLine(written: string): { readonly line: string; readonly isBackground: boolean } {
  // The line may also end in `&&`, `|&`, `>&`, `<&` or `\\&`, which do not mean the background.
  const line = /^(.*[^\s\\&|<>])\s*&\s*$/s.exec(written)?.[1]
  return line === undefined ? { line: written, isBackground: false } : { line, isBackground: true }
}

function descriptionOf({ shell = false, allow = [], env }: CommandPolicy): string {
  const what = shell ? 'Run a command line with /bin/sh' : 'Run a program, without a shell'
  return [
    `${what}, and return its output; with async: true in the background (see check_async_tasks).`,
    ...(shell ? [] : [boundLines([`Programs: ${namesOf(allow)}.`], LIST_CHARS)]),
    ...(env === undefined ? [] : [`Variables: ${namesOf(env)}.`]),
  ].join('\n')
}

/** The input for the task of a command. The launch is refused when no slot is free. */
export function commandInput({ shell }: CommandPolicy, allowed: AllowedCommand): LaunchTaskInput {
  const { argv, cwd } = allowed
  return {
    subagentName: nameOf(allowed),
    goalPrompt: previewText(shell === true ? (argv.at(-1) ?? '') : commandLine(argv), GOAL_CHARS),
    kind: 'command',
    command: [...argv],
    graceMs: STOP_MS.task,
    whenFull: 'refuse',
    cwd,
  }
}

/** The name of the task of a command: the last part of the program's path. */
function nameOf({ argv: [program] }: AllowedCommand): string {
  return program.split(/[\\/]/).at(-1) ?? program
}

/** Creates the runner of a command. The variables of the command are not stored, so only this process can run it (`isBound`). */
export function commandRunner(
  { argv: [program, ...args], cwd, env }: AllowedCommand,
  manager: AsyncTaskManager,
): ResolvedRunner {
  const { clock } = manager.reads
  const run: RunFunction = (input, context) =>
    literalRunner({
      command: programPath(program),
      args,
      cwd,
      env,
      clock,
      graceMs: STOP_MS.program,
      maxOutputBytes: MAX_OUTPUT_BYTES,
    }).run(input, context)
  return { run, isBound: true }
}

/** The result of a call that found no free slot, or no free place for a waiting command. */
function limitRefusal(
  manager: AsyncTaskManager,
  { cancel }: FollowUps,
  { after, concurrencyKey }: TaskCall['input'],
  { message, owner }: TaskLimitError,
): ToolResult {
  const max = manager.getMaxCommands()
  const reason = (after ?? concurrencyKey ?? owner) === undefined ? `Max commands (${max}) reached` : message
  const advice = `Wait until one has ended (wait_for_async_tasks), or cancel one (${cancel}).`
  return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
}

export const runCommandTool: HostTool<ReturnType<typeof createRunCommandTool> | undefined> = {
  name: NAME,
  title: 'Run a program',
  summary: 'Runs a program that the configuration allows, with `async: true` in the background.',
  purpose: 'runs a program in the background.',
  starts: 'a program',
  hints: { destructiveHint: true, openWorldHint: true },
  output: lazily(() =>
    outputOf({
      ...launchedFields(),
      exit_code: ['exitCode', z.number().optional()],
      ended_processes: ['endedProcesses', z.number().optional()],
      ...clampedFields(),
    }),
  ),
  answersLater: ({ async: isAsync, command }) => isAsync === true || readLine(String(command)).isBackground,
  // A command takes this slot in the background and while its call waits for it.
  slotOf: () => 'command',
  create: ({ owned, launching, commands }) => commands && createRunCommandTool({ ...owned, ...launching, commands }),
}
