/** Makes the tools of one MCP client from the tools of `src/tools`, which check their own input. */
import { resolve } from 'node:path'
import type { z } from 'zod'
import { defined } from '../defined.js'
import { jsonBytes } from '../json/json-size.js'
import { shortSchemaOf } from '../protocol/json-schema.js'
import type { CommandPolicy } from '../tools/command-policy.js'
import { contextLines, subagentEntry, type SubagentEntry } from '../tools/subagents.js'
import type { ToolDescriptor, ToolSetting } from '../tools/tool-descriptor.js'
import { TOOLS, toolList } from '../tools/tool-list.js'
import type { Tool, ToolResult } from '../tools/tool.js'
import { adapted } from './adapted-tools.js'
import { monitorLimits, type Backend } from './backend.js'
import { FOLLOW_UPS } from './follow-ups.js'
import { listed, toCallToolResult, type McpTool } from './mcp-tool.js'
import { taskResult } from './task-result.js'
import type { FindProject } from './working-directory.js'

/**
 * Creates the tools for one owner's tasks.
 * @param findProject finds the client's project folder; default: finds none
 */
export function createTaskTools(
  backend: Backend,
  owner: string,
  findProject: FindProject = () => Promise.resolve(undefined),
): McpTool[] {
  const client = { backend, owner, setting: settingOf(backend, owner), findProject }
  const tools = toolList.flatMap((descriptor) => {
    const tool = servedTool(descriptor, client.setting)
    return tool === undefined ? [] : [toMcpTool(adapted(tool, client), descriptor, backend, owner)]
  })
  return withContexts(tools, client.setting.subagents.listSubagents())
}

/** The maximum size of the definitions of all tools, in bytes of JSON. A client sends the definitions to its model in each turn. */
const DEFINITION_BYTES = 14_000

/** Adds the schemas of the subagents' `context` to the description of `task`, as far as the other definitions leave room. */
function withContexts(tools: McpTool[], subagents: readonly SubagentEntry[]): McpTool[] {
  if (subagents.every((each) => typeof each === 'string' || each.contextSchema === undefined)) return tools
  const definitions = tools.filter(({ isListed = true }) => isListed).map((tool) => listed(tool, true))
  const lines = contextLines(subagents, DEFINITION_BYTES - jsonBytes(definitions), shortSchemaOf)
  return tools.map((tool) =>
    tool.name === TOOLS.task.name ? { ...tool, description: [tool.description, ...lines].join('\n') } : tool,
  )
}

function settingOf(backend: Backend, owner: string) {
  const { manager, commandTasks, instances, subagents, config } = backend
  const { maxMessageChars, defaultTimeoutSeconds, maxTimeoutSeconds, backgroundAfterSeconds } = config
  const owned = { getAsyncTaskManager: () => manager, owner, maxMessageChars, followUps: FOLLOW_UPS }
  const entries = [...subagents].map(([name, subagent]) => subagentEntry(name, subagent))
  return {
    owned,
    shown: owned,
    launching: { defaultTimeoutSeconds, maxTimeoutSeconds, backgroundAfterSeconds },
    subagents: { resolveSubagent: (name) => subagents.get(name), listSubagents: () => entries },
    taskManager: commandTasks,
    instances,
    hasSchedules: config.schedules !== undefined,
    ...defined({ commands: policyOf(backend), monitors: monitorLimits(config, backend.folder) }),
  } satisfies ToolSetting
}

/** The commands that the model may start; undefined if the configuration has no `commands`. */
function policyOf({ config: { commands }, folder, projectFolder }: Backend): CommandPolicy | undefined {
  if (commands === undefined) return undefined
  const { maxCommands: _max, cwd, ...rest } = commands
  const folders = cwd === undefined ? [projectFolder] : [cwd].flat().map((each) => resolve(folder, each))
  return { ...(rest as CommandPolicy), cwd: folders }
}

/** The tool as clients get it; undefined if something that it needs is not configured. */
function servedTool({ create, served = {} }: ToolDescriptor, setting: ToolSetting): Tool | undefined {
  const tool = (served.create ?? create)?.(setting)
  if (tool === undefined) return undefined
  const { description = tool.description, texts } = served
  return {
    ...tool,
    description: typeof description === 'string' ? description : description(setting),
    inputSchema: texts === undefined ? tool.inputSchema : withTexts(tool.inputSchema, texts),
  }
}

function withTexts(schema: z.ZodObject, texts: Readonly<Record<string, string>>): z.ZodObject {
  const described = Object.entries(texts).flatMap(([name, text]) => {
    const field = schema.shape[name] as z.ZodType | undefined
    return field === undefined ? [] : [[name, field.describe(text)]]
  })
  return schema.extend(Object.fromEntries(described) as z.ZodRawShape)
}

function toMcpTool(tool: Tool, descriptor: ToolDescriptor, backend: Backend, owner: string): McpTool {
  const { name, title, hints, needsInstances = false, listsTasks, slotOf, served } = descriptor
  const { config, slots, commandTasks, taskManager } = backend
  const output = descriptor.output()
  const hasInstances = config.instances.length > 0 || commandTasks !== taskManager
  const mcpTool: McpTool = {
    name,
    title,
    description: tool.description,
    inputSchema: without(tool.inputSchema, served?.unlisted),
    outputSchema: output.schema,
    annotations: hints,
    isListed: hasInstances || !needsInstances,
    ...defined({ listsTasks }),
    call: async (args, { signal, detach, hold, asker }) =>
      toCallToolResult(await tool.execute(args, { signal, detach, hold, asker }), output),
  }
  if (slotOf === undefined) return mcpTool
  // Calls of this tool launch an async task, so they can become MCP tasks.
  return {
    ...mcpTool,
    call: async (args, { onLaunched, inputResponses: _inputResponses, ...context }) => {
      const execute = (onSlotTaken: () => void): Promise<ToolResult> =>
        tool.execute(args, {
          ...context,
          onLaunched: (taskId) => {
            onSlotTaken()
            onLaunched?.(taskId)
          },
        })
      return toCallToolResult(await slots.launch(slotOf(args), owner, execute), output)
    },
    start: async (args, { signal }) => {
      // A call with `async: true` returns as soon as the task is launched, so it needs no MCP task.
      if (args['async'] === true) return undefined
      const inBackground = { ...args, async: true }
      const launched = await slots.launch(slotOf(inBackground), owner, (onLaunched) =>
        tool.execute(inBackground, { signal, onLaunched }),
      )
      const taskId = launched.metadata?.['agentId']
      if (launched.error !== undefined || typeof taskId !== 'string') return toCallToolResult(launched, output)
      return { taskId, toResult: (ended) => taskResult(backend, ended) }
    },
  }
}

function without(schema: z.ZodObject, names: readonly string[] | undefined): z.ZodObject {
  if (names === undefined) return schema
  const mask: Record<string, true> = Object.fromEntries(names.map((name) => [name, true]))
  return schema.omit(mask)
}
