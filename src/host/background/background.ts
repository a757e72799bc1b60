/** Implements `tasks.background`, which lets the calls of any tool run as tasks. */
import { givenManager } from '../../async-tasks/given-manager.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InvalidInputError } from '../../errors.js'
import { accepts, aName, checkOptions, oneOf, required, type OptionTypes } from '../../protocol/option-checks.js'
import { aSecondsLimit } from '../../tools/background-after.js'
import { timeoutPolicy } from '../../tools/task-timeout.js'
import { readLaunchOptions } from '../../tools/task-tool-options.js'
import type { BackgroundMode, BackgroundOptions, InBackground } from './background-types.js'
import { withParameter, withReference } from './schemas.js'
import type { ToolTasks } from './tool-call.js'
import { aiSdkTool, langChainTool, mcpTool, neutralTool, openaiAgentsTool } from './tool-kinds.js'

const optionTypes: OptionTypes<BackgroundOptions> = {
  mode: required(oneOf(['never', 'choice', 'always'])),
  afterSeconds: aSecondsLimit,
  name: aName,
  owner: aName,
  parentId: aName,
}

/**
 * Wraps a tool.
 * @param host the options that the host's tools use to launch tasks
 * @throws INVALID_INPUT for an invalid option or tool
 * @throws INVALID_SETTING for a time that is outside its range
 */
export function backgroundTool<T, Mode extends BackgroundMode>(
  host: Parameters<typeof readLaunchOptions>[0],
  tool: T,
  options: BackgroundOptions<Mode>,
): InBackground<T, Mode> {
  checkOptions<BackgroundOptions>(options, optionTypes)
  const { mode, afterSeconds: backgroundAfterSeconds, parentId } = options
  if (backgroundAfterSeconds !== undefined && mode !== 'choice') {
    throw new InvalidInputError(
      'options.afterSeconds',
      backgroundAfterSeconds,
      `no value, because only the mode 'choice' uses it (the mode is '${mode}')`,
    )
  }
  const given = Object(tool) as Readonly<Record<string, unknown>>
  const [schema, change] = kindOf(given)
  if (mode === 'never') return tool as InBackground<T, Mode>
  const name = options.name ?? given['name']
  if (!accepts(aName, name)) {
    throw new InvalidInputError('options.name', name, 'a name for the tasks, because the tool has no name')
  }
  const { owner = parentId === undefined ? host.owner : undefined } = options
  const { inputOf, ...shared } = readLaunchOptions({ ...host, ...omitUndefined({ backgroundAfterSeconds }) })
  const timeoutOf = timeoutPolicy(host)
  const tasks: ToolTasks = {
    isChoice: mode === 'choice',
    taskOf: (task, context) => {
      const timeout = timeoutOf(undefined)
      const limits = inputOf(timeout)
      const timeoutMs = Math.min(task.timeoutMs ?? Infinity, limits.timeoutMs ?? Infinity)
      const input = { ...task, ...limits, subagentName: String(name), owner, parentId }
      if (timeoutMs !== Infinity) input.timeoutMs = timeoutMs
      return { ...shared, manager: givenManager(host), input, timeout, context }
    },
  }
  const { outputSchema } = given
  const changed = {
    ...(tasks.isChoice && { [schema]: withParameter(given[schema], given['strict'] === true, `tool.${schema}`) }),
    ...(outputSchema !== undefined && { outputSchema: withReference(Object(outputSchema) as object) }),
    ...change(given as never, tasks),
  }
  // The prototype is kept, so that the tool stays an instance of its class. Symbols are not copied: a symbol of OpenAI Agents makes that SDK reject a
  // `BackgroundTask` as output.
  const fields = Object.fromEntries(Object.entries(Object.getOwnPropertyDescriptors(given)))
  Object.assign(fields, Object.getOwnPropertyDescriptors(changed))
  return Object.create(Object.getPrototypeOf(given) as object, fields) as InBackground<T, Mode>
}

type Kind = readonly [schema: string, change: (tool: never, tasks: ToolTasks) => object]

/** Recognises the SDK of a tool by the functions of the tool. */
function kindOf(tool: Readonly<Record<string, unknown>>): Kind {
  const has = (...names: string[]): boolean => names.every((name) => typeof tool[name] === 'function')
  if (has('invoke') && tool['type'] === 'function') return ['parameters', openaiAgentsTool]
  if (has('invoke', '_call')) return ['schema', langChainTool]
  if (has('execute', 'describe')) return ['inputSchema', neutralTool]
  if (has('execute') && 'inputSchema' in tool) return ['inputSchema', aiSdkTool]
  if (has('call') && 'inputSchema' in tool) return ['inputSchema', mcpTool]
  const expected = 'a tool of the AI SDK (with execute), OpenAI Agents, LangChain, MCP (with call) or this package'
  throw new InvalidInputError('tool', tool, expected)
}
