/** The public names of `agent-tasks/tools`: what a model can call, and how to define more of it. */

// The tools, bound to no agent SDK
export { createTaskTool } from './task-tool.js'
export type { TaskParams, TaskToolOptions } from './task-tool.js'
export { createCheckAsyncTasksTool } from './check-async-tasks.js'
export type { CheckAsyncTasksOptions, CheckAsyncTasksParams } from './check-async-tasks.js'
export { createWaitForAsyncTasksTool } from './wait-for-async-tasks.js'
export type { WaitForAsyncTasksOptions, WaitForAsyncTasksParams } from './wait-for-async-tasks.js'
export { createSubmitCommandsTool } from './submit-commands.js'
export type { SubmitCommandsOptions, SubmitCommandsParams } from './submit-commands.js'

// The same in the shape of the seeds' classes
export { TaskTool } from './task-tool.js'
export { CheckAsyncTasksTool } from './check-async-tasks.js'
export { WaitForAsyncTasksTool } from './wait-for-async-tasks.js'
export { buildInvocation } from './invocation.js'
export type { ToolInvocation } from './invocation.js'

// Subagents
export type { ResolveSubagent, Subagent, SubagentDefinition, SubagentRequest, SubagentRunner } from './subagents.js'
export type { TimeoutSetting, TimeoutSettings } from './task-timeout.js'

export type { FollowUps } from './follow-ups.js'

// Tools of one's own
export { defineTool } from './tool.js'
export type { Tool, ToolContext, ToolDefinition, ToolError, ToolResult } from './tool.js'
