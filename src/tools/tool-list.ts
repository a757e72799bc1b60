/** The list of all tools for models. */
import { answerTool, cancelTool, readTool } from './check-one-task.js'
import { checkAsyncTasksTool } from './check-async-tasks.js'
import { listInstancesTool } from './list-instances.js'
import { monitorTool } from '../features/monitors/tool.js'
import { runCommandTool } from './run-command.js'
import { scheduleTool } from '../features/schedules/tool.js'
import { sendToTaskTool } from '../features/questions/tool.js'
import { submitCommandsTool } from './submit-commands.js'
import { taskTool } from './task-tool.js'
import type { HostTool, ToolDescriptor, ToolSetting } from './tool-descriptor.js'
import { waitForAsyncTasksTool } from './wait-for-async-tasks.js'

/** The tools by name, in the order in which models list them. */
export const TOOLS = {
  /** Runs a subagent. */
  task: taskTool,
  /** Lists tasks, shows one, reads its output, cancels it, and answers its questions. */
  check_async_tasks: checkAsyncTasksTool,
  /** Waits for tasks and returns their results. */
  wait_for_async_tasks: waitForAsyncTasksTool,
  /** Cancels a task. */
  cancel_async_task: cancelTool,
  /** Reads the output of a task. */
  read_task_output: readTool,
  /** Answers the question of a task. */
  answer_async_task: answerTool,
  /** Sends a message to a running task. */
  send_to_task: sendToTaskTool,
  /** Wakes the agent, or launches a task, at a later time. */
  schedule: scheduleTool,
  /** Runs commands on an instance. */
  submit_commands: submitCommandsTool,
  /** Runs a program as a command. */
  run_command: runCommandTool,
  /** Delivers matching lines of a task, a program or a file. */
  monitor: monitorTool,
  /** Lists the instances and their tools. */
  list_instances: listInstancesTool,
} as const satisfies Record<string, ToolDescriptor>

/** The name of a tool. */
export type ToolName = keyof typeof TOOLS

/** The descriptors in the order of the list. */
export const toolList: readonly ToolDescriptor[] = Object.values(TOOLS)

/** The descriptors in the order of `names`. Tools that are not in `names` follow. */
export function inOrder(names: readonly ToolName[]): ToolDescriptor[] {
  const first = names.map((name) => TOOLS[name])
  return [...first, ...toolList.filter((tool) => !first.some(({ name }) => name === tool.name))]
}

type Made<Name extends ToolName> = (typeof TOOLS)[Name] extends HostTool<infer Tool> ? Tool : never

/** The types of the tools of hosts, by name. `IsOptional` selects those that need an option, or those that every host has. */
type HostTools<IsOptional extends boolean> = {
  readonly [
    Name in ToolName as [Made<Name>] extends [never]
      ? never
      : IsOptional extends (undefined extends Made<Name> ? true : false)
        ? Name
        : never
  ]: NonNullable<Made<Name>>
}

/**
 * The tools for a model, by name.
 * @useDeclaredType
 */
export type AgentTools = HostTools<false>

/**
 * The tools that a host has only with an option, by name.
 * @useDeclaredType
 */
export type OptionalTools = HostTools<true>

/** Creates the tools of a host. An optional tool is created if the setting contains what it needs. */
export function createHostTools(setting: ToolSetting): AgentTools & Partial<OptionalTools> {
  return Object.fromEntries(
    toolList.flatMap((tool) => {
      const made = tool.create?.(setting)
      return made === undefined ? [] : [[tool.name, made]]
    }),
  ) as AgentTools & Partial<OptionalTools>
}
