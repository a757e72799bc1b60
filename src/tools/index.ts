/** `agent-tasks/tools`: the tools for a model, each on its own, and how to define your own. */

// The tools, for any agent SDK
export { createTaskTool } from './task-tool.js'
export type { TaskParams, TaskToolOptions } from './task-tool.js'
export { createCheckAsyncTasksTool } from './check-async-tasks.js'
export type { CheckAsyncTasksOptions, CheckAsyncTasksParams } from './check-async-tasks.js'
export { createWaitForAsyncTasksTool } from './wait-for-async-tasks.js'
export type { WaitForAsyncTasksOptions } from './wait-for-async-tasks.js'
export { createSendToTaskTool } from '../features/questions/tool.js'
export type { SendToTaskOptions } from '../features/questions/tool.js'
export { createSubmitCommandsTool } from './submit-commands.js'
export type { SubmitCommandsOptions } from './submit-commands.js'
export { findCommandRunner } from './cluster-command-run.js'
export { createRunCommandTool } from './run-command.js'
export type { RunCommandOptions } from './run-command.js'

// The base of the tools that are classes
export { BaseDeclarativeTool, buildInvocation } from './declarative-tool.js'
export type { ToolInvocation } from './declarative-tool.js'

// A host that asks a person the questions of tasks
export type { QuestionAsker } from '../features/questions/question-askers.js'

// Your own tools
export { defineTool } from './tool.js'
export type { ToolDefinition } from './tool.js'
