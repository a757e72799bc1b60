/** The tool `task`, which runs a subagent. The call returns the result, or leaves the task running in the background. */
import { z } from 'zod'
import { givenManager } from '../async-tasks/given-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError } from '../errors.js'
import { modelSchemaOf } from '../protocol/json-schema.js'
import { lazily } from '../protocol/lazily.js'
import { fromParams } from '../protocol/run-fields.js'
import { previewText } from '../features/output/bounded-text.js'
import { aFunction, aName, checkOptions, pickOptions, required, type OptionTypes } from '../protocol/option-checks.js'
import { preview } from '../data/preview.js'
import { backgroundAfterSchema, earlierOf } from './background-after.js'
import { BaseDeclarativeTool } from './declarative-tool.js'
import { withLookupLimits } from './lookup-limits.js'
import {
  bindSubagent,
  contextLines,
  furtherInput,
  subagentLines,
  type ResolveSubagent,
  type SubagentEntry,
  type SubagentParams,
} from './subagents.js'
import { AFTER_TEXTS, afterFields, keyField, readWaits } from './task-after.js'
import { foregroundRefusal, refusedInPlace, runInBackground, runInPlace } from './task-runs.js'
import {
  launchOptionTypes,
  readLaunchOptions,
  type AsyncTaskToolOptions,
  type ForegroundOptions,
} from './task-tool-options.js'
import { timeoutPolicy, timeoutSecondsSchema, withTimeoutText, type TimeoutSettings } from './task-timeout.js'
import { STARTS_WORK, type HostTool } from './tool-descriptor.js'
import { clampedFields, launchedFields, outputOf } from './tool-output.js'
import { defineTool, errorResult, invalidParameters, type Tool, type ToolResult } from './tool.js'
import { strictObject } from '../protocol/strict-object.js'

const notBlank = (text: string): boolean => text.trim() !== ''

export const taskSchema = lazily(() =>
  strictObject({
    subagent_name: z
      .string()
      .max(256)
      .refine(notBlank, 'the name of a subagent')
      .describe('The name of the subagent to run.'),
    goal_prompt: z.string().refine(notBlank, 'a goal, in words').describe('What the subagent should achieve.'),
    behaviour_prompts: z.array(z.string()).optional().describe('Further instructions on how to do it.'),
    tool_whitelist: z.array(z.string()).optional().describe('The only tools it may use. Default: all of its tools.'),
    expected_outputs: z
      .record(z.string(), z.string())
      .optional()
      .describe('The variables it should emit: a description of each, by name.'),
    timeout_seconds: timeoutSecondsSchema(),
    background_after_seconds: backgroundAfterSchema(),
    context: z.record(z.string(), z.unknown()).optional().describe('Further data for the subagent, by name.'),
    async: z
      .boolean()
      .optional()
      .describe('true: run in the background; you are notified when it ends. false (default): wait for its result.'),
    ...afterFields(),
    after: afterFields().after.describe(
      'With async: true: IDs of tasks that have to end first. The subagent gets their results.',
    ),
    concurrency_key: keyField(),
  }),
)

/**
 * The parameters of the tool `task`.
 * @useDeclaredType
 */
export type TaskParams = z.input<ReturnType<typeof taskSchema>>

/** Options of `createTaskTool`. */
export interface TaskToolOptions extends AsyncTaskToolOptions, TimeoutSettings, ForegroundOptions {
  /** Finds a subagent by its name. */
  readonly resolveSubagent: ResolveSubagent
  /** Returns the known subagents. The description of the tool lists them, and so does the error for an unknown name. */
  readonly listSubagents?: () => readonly SubagentEntry[]
  /** The owner of the tasks, who receives the results of background tasks. Default `main`. */
  readonly owner?: string
  /** The id of the task whose run calls the tool. The run then owns the tasks that the tool launches (`ownerOfRun`). Default: no parent. */
  readonly parentId?: string
  /** The working directory of every request (`cwd`). Default: the request has no working directory. */
  readonly cwd?: string | undefined
}

const optionTypes: OptionTypes<TaskToolOptions> = {
  ...launchOptionTypes,
  resolveSubagent: required(aFunction),
  listSubagents: aFunction,
  parentId: aName,
  cwd: aName,
}

const NAME = 'task'

/** The maximum size of all context schemas in the description of the tool, in bytes of JSON. */
const SCHEMA_BYTES = 4000

/**
 * Creates the tool `task`.
 * @param options the manager, the subagents, and limits
 * @returns the tool
 * @throws INVALID_SETTING for a timeout or `maxMessageChars` out of its range
 * @throws INVALID_INPUT for an unknown or invalid option
 */
export function createTaskTool(options: TaskToolOptions): Tool<ReturnType<typeof taskSchema>> {
  checkOptions(options, optionTypes)
  const timeoutOf = timeoutPolicy(options)
  const { inputOf, ...shared } = readLaunchOptions(options)
  const { parentId, cwd } = options
  const description =
    'Run a subagent on a goal. By default the call returns its result. With async: true it returns at once and the ' +
    'subagent runs in the background, and its result is delivered automatically.'
  return defineTool({
    name: NAME,
    description,
    inputSchema: taskSchema(),
    listed: () => ({
      description: describeWith(description, options.listSubagents?.() ?? []),
      inputSchema: withTimeoutText(taskSchema(), options),
    }),
    describe: ({ subagent_name, goal_prompt, async: isAsync }) => {
      return `Run subagent '${subagent_name}'${isAsync === true ? ' in the background' : ''}: ${previewText(goal_prompt, 100)}`
    },
    run: async (given, context) => {
      const { async: isAsync = false, timeout_seconds, background_after_seconds, ...fields } = given
      const { after: _after, on_failed_dependency: _onFailed, concurrency_key: _key, ...params } = fields
      const timeout = timeoutOf(timeout_seconds)
      const manager = givenManager(options)
      const waits = readWaits(fields, { tool: NAME, manager, owner: options.owner, parentId, isAsync })
      if ('refusal' in waits) return waits.refusal
      const further = furtherInput({ ...params, ...omitUndefined({ cwd }) })
      const call = {
        manager,
        input: {
          subagentName: params.subagent_name,
          goalPrompt: params.goal_prompt,
          ...inputOf(timeout),
          ...waits.input,
          ...fromParams(further),
          ...omitUndefined({ parentId }),
        },
        timeout,
        context,
        ...shared,
        backgroundAfterSeconds: earlierOf(shared.backgroundAfterSeconds, background_after_seconds),
      }
      const limits = {
        manager: call.manager,
        signal: context.signal,
        ...omitUndefined({ timeoutMs: call.input.timeoutMs }),
      }
      const findRunner = async () =>
        (await withLookupLimits(limits, (ended) => bindSubagent(options.resolveSubagent, params, ended))) ??
        unknownSubagent(options, params)
      if (isAsync) return runInBackground(call, findRunner).catch(refusedContext)
      // This limit is for calls of the agent. The calls of a run have the limits of its family.
      const refusal = parentId === undefined ? foregroundRefusal(call.manager, options.owner) : undefined
      if (refusal !== undefined) return refusal
      const found = await findRunner()
      return 'run' in found ? runInPlace(call, found).catch(refusedInPlace).catch(refusedContext) : found
    },
  })
}

const describeWith = (description: string, entries: readonly SubagentEntry[]): string =>
  [description, ...subagentLines(entries), ...contextLines(entries, SCHEMA_BYTES, modelSchemaOf)].join('\n')

/** The result of a call whose context does not match the schema of the subagent. */
function refusedContext(error: unknown): ToolResult {
  if (error instanceof InvalidInputError && /^input\.context(?![^.[])/.test(error.field)) {
    return invalidParameters(NAME, `params${error.message.slice('input'.length)}`)
  }
  throw error
}

function unknownSubagent(options: TaskToolOptions, { subagent_name }: SubagentParams): ToolResult {
  const names = options.listSubagents?.().map((entry) => (typeof entry === 'string' ? entry : entry.name))
  const known = names === undefined ? '' : names.length === 0 ? ' There are none.' : ` Known: ${names.join(', ')}.`
  const message = `params.subagent_name: got ${preview(subagent_name)}, expected the name of a subagent.${known}`
  return errorResult('parameter_validation', message)
}

export const launchOutput = lazily(() =>
  outputOf({
    ...launchedFields(),
    timeout_seconds: ['effectiveTimeoutSeconds', z.number().optional()],
    ...clampedFields(),
    instance_id: ['instanceId', z.string().optional()],
    queue_position: ['queuePosition', z.number().optional()],
  }),
)

export const taskTool: HostTool<ReturnType<typeof createTaskTool>> = {
  name: NAME,
  title: 'Run a subagent',
  summary: 'Runs a subagent, with `async: true` in the background.',
  purpose:
    'runs a subagent. With async: true it returns at once; without, it waits for the result. Put all that the subagent has to know into goal_prompt.',
  starts: 'a subagent',
  hints: STARTS_WORK,
  output: launchOutput,
  answersLater: (args) => args['async'] === true,
  slotOf: (args) => (args['async'] === true ? 'background' : 'inPlace'),
  create: ({ owned, launching, subagents }) => createTaskTool({ ...owned, ...launching, ...subagents }),
  served: {
    description: ({ subagents }) =>
      [
        'Run a subagent on a goal, and return its result. With async: true it runs in the background: its result comes with the answer of a ' +
          'later call of any of these tools.',
        ...subagentLines(subagents.listSubagents?.() ?? []),
      ].join('\n'),
    texts: {
      subagent_name: '',
      goal_prompt: 'All that it has to know.',
      behaviour_prompts: 'Further instructions.',
      tool_whitelist: 'The only tools it may use.',
      expected_outputs: 'What it should return, by name.',
      context: '',
      background_after_seconds: 'Without async: it continues in the background after this many seconds.',
      async: 'true: in the background.',
      ...AFTER_TEXTS,
    },
  },
}

/** The tool `task` as a class. */
export class TaskTool extends BaseDeclarativeTool<ReturnType<typeof taskSchema>> {
  /** The name under which the tool is registered. */
  static readonly Name = NAME
  override readonly name = NAME
  override readonly displayName = 'Task'
  override readonly kind = 'execute'

  /**
   * @param deps the options of the tool; additional fields are ignored
   * @throws INVALID_SETTING for a timeout or `maxMessageChars` out of its range
   */
  constructor(deps: TaskToolOptions) {
    super(createTaskTool(pickOptions(deps, optionTypes)))
  }
}
