/** The public names of `agent-tasks/tools`: the tools for a model, and how to define your own. */

// The tools, for any agent SDK
export { createTaskTool } from './task-tool.js'
export type { TaskParams, TaskToolOptions } from './task-tool.js'
export { createCheckAsyncTasksTool } from './check-async-tasks.js'
export type { CheckAsyncTasksOptions, CheckAsyncTasksParams } from './check-async-tasks.js'
export { createWaitForAsyncTasksTool } from './wait-for-async-tasks.js'
export type { WaitForAsyncTasksOptions, WaitForAsyncTasksParams } from './wait-for-async-tasks.js'
export { createSendToTaskTool } from './send-to-task.js'
export type { SendToTaskOptions, SendToTaskParams } from './send-to-task.js'
export { createSubmitCommandsTool } from './submit-commands.js'
export type { SubmitCommandsOptions, SubmitCommandsParams } from './submit-commands.js'
export { findCommandRunner } from './cluster-command-run.js'
export type { ClusterTasks, FollowOptions } from '../command-tasks/cluster-tasks.js'
export { createRunCommandTool } from './run-command.js'
export type { RunCommandOptions, RunCommandParams } from './run-command.js'
export type { CommandPolicy } from './command-policy.js'

// The same tools as classes
export { TaskTool } from './task-tool.js'
export { CheckAsyncTasksTool } from './check-async-tasks.js'
export { WaitForAsyncTasksTool } from './wait-for-async-tasks.js'
export { BaseDeclarativeTool, buildInvocation } from './declarative-tool.js'
export type { ToolInvocation } from './declarative-tool.js'

// Subagents
export type {
  ResolveSubagent,
  Subagent,
  SubagentDefinition,
  SubagentEntry,
  SubagentRequest,
  SubagentRunner,
} from './subagents.js'
export type { TimeoutSetting, TimeoutSettings } from './task-timeout.js'

export type { AsyncTaskToolOptions, FollowUps, ForegroundAbort, ForegroundOptions } from './task-tool-options.js'
export type { FollowUpCall } from '../async-tasks/output/follow-ups.js'
export type { Asking, QuestionAsker } from '../async-tasks/questions/question-askers.js'

// Your own tools
export { defineTool } from './tool.js'
export type { HeldLease, HoldLease } from '../async-tasks/delivery/leases.js'
export type { OutputUpdate, Tool, ToolContext, ToolDefinition, ToolError, ToolInput, ToolResult } from './tool.js'
