/** Adapts some tools to one MCP client: to its working directory, its instances and its limits. */
import { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import type { ToolSetting } from '../tools/tool-descriptor.js'
import { TOOLS, type ToolName } from '../tools/tool-list.js'
import { errorResult, type Tool } from '../tools/tool.js'
import type { Backend } from './backend.js'
import { withReserved } from './reserved-results.js'
import { UNTRUSTED } from './untrusted-tools.js'
import { workingDirectory, type FindProject } from './working-directory.js'

export interface ToolClient {
  readonly backend: Backend
  readonly owner: string
  readonly setting: ToolSetting
  readonly findProject: FindProject
}
type Args = Readonly<Record<string, unknown>>

const adaptations: Readonly<Partial<Record<ToolName, (tool: Tool, client: ToolClient) => Tool>>> = {
  task: inWorkingDirectory,
  wait_for_async_tasks: (tool, { backend, owner }) => withReserved(tool, () => backend.manager, owner),
  submit_commands: withInstance,
  run_command: inProject,
  schedule: launchingInProject,
  monitor: inSlot,
}

export function adapted(tool: Tool, client: ToolClient): Tool {
  const adapt = new Map(Object.entries(adaptations)).get(tool.name)
  return adapt === undefined ? tool : adapt(tool, client)
}

const cwdSchema = z.string().optional().describe('The working directory, for subagents that accept one.')

/**
 * Adapts `task`. The subagent runs in the directory that its configuration, the call or the client's project gives. If the call sets no time limit,
 * `timeoutSeconds` of the subagent's configuration applies.
 */
function inWorkingDirectory(tool: Tool, { backend, setting, findProject }: ToolClient): Tool {
  const { config, subagents } = backend
  return {
    ...tool,
    description: subagents.size === 0 ? `${tool.description}\n${noSubagents(backend)}` : tool.description,
    inputSchema: config.subagents.some(({ cwdPerCall }) => cwdPerCall)
      ? tool.inputSchema.extend({ cwd: cwdSchema })
      : tool.inputSchema,
    execute: async (input, context) => {
      if (subagents.size === 0) return errorResult('execution_failed', noSubagents(backend))
      const { cwd: asked, ...params } = input as Args
      const found = await workingDirectory(backend, params['subagent_name'], asked, findProject)
      if ('refusal' in found) return found.refusal
      const timeoutSeconds = config.subagents.find(({ name }) => name === params['subagent_name'])?.timeoutSeconds
      const deadline = timeoutSeconds === undefined ? {} : { timeout_seconds: timeoutSeconds }
      const here: Tool = TOOLS.task.create({ ...setting, subagents: { ...setting.subagents, cwd: found.cwd } })
      return here.execute({ ...deadline, ...params }, context)
    },
  }
}

function noSubagents({ configFile, untrusted }: Backend): string {
  if (untrusted !== undefined) return UNTRUSTED
  return configFile === undefined
    ? 'No subagents are configured.'
    : `No subagents are configured: the user can add them to ${configFile}.`
}

/**
 * Adapts `schedule`. A scheduled subagent gets the directory and the time limit that a call of `task` without `cwd` and `timeout_seconds` would give it.
 */
function launchingInProject(tool: Tool, { backend, setting, findProject }: ToolClient): Tool {
  return {
    ...tool,
    execute: async (input, context) => {
      const { subagent_name: named } = (input ?? {}) as Args
      const found = await workingDirectory(backend, named, undefined, findProject)
      const cwd = 'cwd' in found ? found.cwd : undefined
      const seconds = backend.config.subagents.find(({ name }) => name === named)?.timeoutSeconds
      const launching = { ...setting.launching, ...omitUndefined({ defaultTimeoutSeconds: seconds }) }
      const here: Tool | undefined = TOOLS.schedule.create({
        ...setting,
        launching,
        subagents: { ...setting.subagents, cwd },
      })
      return (here ?? tool).execute(input, context)
    },
  }
}

/** Adapts `submit_commands`: connects the instance before the commands run on it. An invalid call connects nothing. */
function withInstance(tool: Tool, { backend: { instances } }: ToolClient): Tool {
  return {
    ...tool,
    execute: async (input, context) => {
      const { instanceId } = input as Args
      const problem = tool.inputSchema.safeParse(input).success
        ? await instances.ready(typeof instanceId === 'string' ? instanceId : undefined)
        : undefined
      return problem === undefined ? tool.execute(input, context) : errorResult('execution_failed', problem)
    },
  }
}

/** Adapts `run_command` and `monitor`: programs run in the client's project, unless the configuration sets a directory (`commands.cwd`). */
function inProject(tool: Tool, { backend: { config }, setting, findProject }: ToolClient): Tool {
  if (config.commands?.cwd !== undefined) return tool
  return {
    ...tool,
    execute: async (input, context) => {
      const project = await findProject()
      if (project === undefined) return tool.execute(input, context)
      const { create } = tool.name === TOOLS.monitor.name ? TOOLS.monitor : TOOLS.run_command
      const here: Tool | undefined = create({
        ...setting,
        commands: { ...setting.commands, cwd: [project] },
      })
      return (here ?? tool).execute(input, context)
    },
  }
}

/**
 * Adapts `monitor`. A monitor that runs a program counts toward the client's limit of commands. The program runs in the same directory as those of
 * `run_command`.
 */
function inSlot(tool: Tool, client: ToolClient): Tool {
  const { backend, owner } = client
  const execute: Tool['execute'] = (input, context) => inProject(tool, client).execute(input, context)
  return {
    ...tool,
    execute: (input, context) =>
      (input as Args)['command'] === undefined
        ? execute(input, context)
        : backend.slots.launch('command', owner, () => execute(input, context)),
  }
}
