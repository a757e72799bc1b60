/** `agent-tasks/tools`: the tools for a model, each on its own, and how to define your own. */

// The tools, for any agent SDK
export { createTaskTool } from './task-tool.js'
export { createCheckAsyncTasksTool } from './check-async-tasks.js'
export type { CheckAsyncTasksParams } from './check-async-tasks.js'
export { createWaitForAsyncTasksTool } from './wait-for-async-tasks.js'
export { createSendToTaskTool } from '../features/questions/tool.js'
export { createSubmitCommandsTool } from './submit-commands.js'
export { findCommandRunner } from './cluster-command-run.js'
export { createRunCommandTool } from './run-command.js'

// The base of the tools that are classes
export { BaseDeclarativeTool } from './declarative-tool.js'

// A host that asks a person the questions of tasks
export type { QuestionAsker } from '../features/questions/question-askers.js'

// Your own tools
export { defineTool } from './tool.js'
