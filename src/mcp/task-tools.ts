/** Makes the tools of one MCP client from the tools of `src/tools`, which check their own input. */
import { resolve } from 'node:path'
import type { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import { jsonBytes } from '../data/json-size.js'
import { shortSchemaOf } from '../protocol/json-schema.js'
import { lazily } from '../protocol/lazily.js'
import type { CommandPolicy } from '../tools/command-policy.js'
import { earlierOf } from '../tools/background-after.js'
import { contextLines, subagentEntry } from '../tools/subagents.js'
import type { ToolDescriptor, ToolSetting } from '../tools/tool-descriptor.js'
import { TOOLS, toolList } from '../tools/tool-list.js'
import { rejoinInPlace } from '../tools/task-runs.js'
import { readLaunchOptions } from '../tools/task-tool-options.js'
import type { Tool, ToolContext, ToolResult } from '../tools/tool.js'
import { adapted, type ToolClient } from './adapted-tools.js'
import type { Backend } from './backend.js'
import { ANONYMOUS } from './callers.js'
import { ANONYMOUS_FOLLOW_UPS, FOLLOW_UPS_BY_ARRIVAL, type ResultArrival } from './follow-ups.js'
import { mcpFeatures } from './mcp-features.js'
import { listed, toCallToolResult, type McpTool } from './mcp-tool.js'
import { withMarks } from './result-marks.js'
import { taskResult } from './task-result.js'
import type { FindProject } from './working-directory.js'

/**
 * Creates the tools for one owner's tasks. What models read of them is the same for all owners, and is made once.
 * @param findProject finds the client's project folder; default: finds none
 * @param arrival how results reach the model of the client
 */
export function createTaskTools(
  backend: Backend,
  owner: string,
  findProject: FindProject = () => Promise.resolve(undefined),
  arrival: ResultArrival = 'call',
): McpTool[] {
  const client = { backend, owner, setting: settingOf(backend, owner, arrival), findProject }
  let definitions = definitionsOf.get(backend)
  if (definitions === undefined) definitionsOf.set(backend, (definitions = define(client)))
  return definitions.map((definition) => toMcpTool(definition, client))
}

/** What models read of a tool. */
type Definition = Omit<McpTool, 'call' | 'start'> & { readonly descriptor: ToolDescriptor }

const definitionsOf = new WeakMap<Backend, readonly Definition[]>()

function define(client: ToolClient): readonly Definition[] {
  const { config, commandTasks, taskManager, session } = client.backend
  const hasInstances = config.instances.length > 0 || commandTasks !== taskManager
  const definitions = toolList.flatMap((descriptor) => {
    const tool = servedTool(descriptor, client)
    if (tool === undefined) return []
    const { name, title, hints, needsInstances = false, listsTasks, answersLater, served } = descriptor
    return {
      descriptor,
      name,
      title,
      description: tool.description,
      inputSchema: without(tool.inputSchema, served?.unlisted),
      outputSchema: descriptor.output().schema,
      annotations: hints,
      isListed: hasInstances || !needsInstances,
      ...omitUndefined({ listsTasks, answersLater }),
    }
  })
  const described = withContexts(definitions, client)
  if (session === undefined) return described
  return described.map((each) => ({ ...each, outputSchema: withMarks(each.descriptor.output().schema) }))
}

/** The maximum size of the definitions of all tools, in bytes of JSON. A client sends the definitions to its model in each turn. */
const DEFINITION_BYTES = 14_000

/** Adds the schemas of the subagents' `context` to the description of `task`, as far as the other definitions leave room. */
function withContexts(definitions: readonly Definition[], client: ToolClient): readonly Definition[] {
  const subagents = client.setting.subagents.listSubagents?.() ?? []
  if (subagents.every((each) => typeof each === 'string' || each.contextSchema === undefined)) return definitions
  const tools = definitions.map((definition) => toMcpTool(definition, client))
  const shown = tools.filter(({ isListed }) => isListed).map((tool) => listed(tool, true))
  const lines = contextLines(subagents, DEFINITION_BYTES - jsonBytes(shown), shortSchemaOf)
  return definitions.map((each) =>
    each.name === TOOLS.task.name ? { ...each, description: [each.description, ...lines].join('\n') } : each,
  )
}

function settingOf(backend: Backend, owner: string, arrival: ResultArrival) {
  const { commandTasks, instances, subagents, config } = backend
  const { maxMessageChars, defaultTimeoutSeconds, maxTimeoutSeconds, backgroundAfterSeconds } = config
  const followUps = owner === ANONYMOUS.owner ? ANONYMOUS_FOLLOW_UPS : FOLLOW_UPS_BY_ARRIVAL[arrival]
  const owned = { getAsyncTaskManager: () => backend.manager, owner, maxMessageChars, followUps }
  const entries = [...subagents].map(([name, subagent]) => subagentEntry(name, subagent))
  const ofFeatures = mcpFeatures.map(({ toolSetting }) => toolSetting?.(config, backend.folder))
  return {
    ...(Object.assign({}, ...ofFeatures) as Partial<ToolSetting>),
    owned,
    shown: owned,
    launching: { defaultTimeoutSeconds, maxTimeoutSeconds, backgroundAfterSeconds },
    subagents: { resolveSubagent: (name) => subagents.get(name), listSubagents: () => entries },
    taskManager: commandTasks,
    instances,
    ...omitUndefined({ commands: policyOf(backend) }),
  } satisfies ToolSetting
}

/** The commands that the model may start; undefined if the configuration has no `commands`. */
function policyOf({ config: { commands }, folder, projectFolder }: Backend): CommandPolicy | undefined {
  if (commands === undefined) return undefined
  const { maxCommands: _max, cwd, ...rest } = commands
  const folders = cwd === undefined ? [projectFolder] : [cwd].flat().map((each) => resolve(folder, each))
  return { ...(rest as CommandPolicy), cwd: folders }
}

/** The tool as a client gets it; undefined if something that it needs is not configured. */
function servedTool({ create, served = {} }: ToolDescriptor, client: ToolClient): Tool | undefined {
  const { setting } = client
  const tool = (served.create ?? create)?.(setting)
  if (tool === undefined) return undefined
  const { description = tool.description, texts } = served
  const shown = {
    ...tool,
    description: typeof description === 'string' ? description : description(setting),
    inputSchema: texts === undefined ? tool.inputSchema : withTexts(tool.inputSchema, texts),
  }
  return adapted(shown, client)
}

function withTexts(schema: z.ZodObject, texts: Readonly<Record<string, string>>): z.ZodObject {
  const described = Object.entries(texts).flatMap(([name, text]) => {
    const field = schema.shape[name] as z.ZodType | undefined
    return field === undefined ? [] : [[name, field.describe(text)]]
  })
  return schema.extend(Object.fromEntries(described) as z.ZodRawShape)
}

function toMcpTool({ descriptor, ...definition }: Definition, client: ToolClient): McpTool {
  const { backend, owner, setting } = client
  const { slotOf } = descriptor
  const output = descriptor.output()
  const tool = lazily(() => servedTool(descriptor, client) as Tool)
  const mcpTool: McpTool = {
    ...definition,
    call: async (args, { signal, detach, hold, asker }) =>
      toCallToolResult(await tool().execute(args, { signal, detach, hold, asker }), output),
  }
  if (slotOf === undefined) return mcpTool
  // Calls of this tool launch an async task, so they can become MCP tasks.
  return {
    ...mcpTool,
    call: async (args, { onLaunched, inputResponses: _inputResponses, rejoin, ...context }) => {
      if (rejoin !== undefined) {
        onLaunched?.(rejoin)
        return toCallToolResult(await rejoinInPlace(rejoiningCall(setting, args, context), rejoin), output)
      }
      const execute = (onSlotTaken: () => void): Promise<ToolResult> =>
        tool().execute(args, {
          ...context,
          onLaunched: (taskId) => {
            onSlotTaken()
            onLaunched?.(taskId)
          },
        })
      return toCallToolResult(await backend.slots.launch(slotOf(args), owner, execute), output)
    },
    start: async (args, { signal }) => {
      // A call with `async: true` returns as soon as the task is launched, so it needs no MCP task.
      if (args['async'] === true) return undefined
      const inBackground = { ...args, async: true }
      const launched = await backend.slots.launch(slotOf(inBackground), owner, (onLaunched) =>
        tool().execute(inBackground, { signal, onLaunched }),
      )
      const taskId = launched.metadata?.['agentId']
      if (launched.error !== undefined || typeof taskId !== 'string') return toCallToolResult(launched, output)
      return { taskId, toResult: (ended) => taskResult(backend, ended) }
    },
  }
}

/** A call that waits for a task which an earlier round of the call has launched. */
function rejoiningCall(
  { owned, launching }: ToolClient['setting'],
  args: Readonly<Record<string, unknown>>,
  context: ToolContext,
) {
  const { background_after_seconds: asked } = args
  const { backgroundAfterSeconds, inputOf: _inputOf, ...shared } = readLaunchOptions({ ...owned, ...launching })
  return {
    ...shared,
    manager: owned.getAsyncTaskManager(),
    context,
    backgroundAfterSeconds: earlierOf(backgroundAfterSeconds, typeof asked === 'number' ? asked : undefined),
  }
}

function without(schema: z.ZodObject, names: readonly string[] | undefined): z.ZodObject {
  if (names === undefined) return schema
  const mask: Record<string, true> = Object.fromEntries(names.map((name) => [name, true]))
  return schema.omit(mask)
}
