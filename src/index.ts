/** `agent-tasks`: background tasks for one agent host. `agent-tasks/parts` has its parts. */

// Everything for one host, ready to use
export { createAgentTasks } from './host/agent-tasks.js'
export type { AgentTasks, AgentTasksWithCommands } from './host/agent-tasks.js'
export type { AgentTasksOptions } from './host/agent-tasks-options.js'
export type { AgentTools } from './tools/tool-list.js'
export type { LaunchOptions } from './host/launch.js'
export type { TaskHandle } from './host/task-handle.js'
export type { TaskHandleEvent } from './host/handle-events.js'
export type { OutputOf, Subagents } from './host/subagent-outputs.js'
export { defineSubagent } from './host/define-subagent.js'
export type { InBackground } from './host/background/background-types.js'
export type { Conversation, ConversationTurn } from './host/conversations/conversation.js'
export type { Turn } from './host/turns.js'
export { disposeOnSignals } from './engine/dispose-on-signals.js'

// The manager of background tasks
export { AsyncTaskManager } from './async-tasks/manager.js'
export type { AsyncTaskManagerOptions } from './async-tasks/manager-options.js'
export type { RegisterTaskInput } from './protocol/async-tasks.js'
export type { TaskPause } from '../machines/registry-events.js'
export type { WaitResult } from './engine/children.js'
export type { HistoryPage } from './store/history/past-tasks.js'
export type { TaskMonitor } from './features/monitors/monitors.js'
export type { Schedule } from './features/schedules/schedules.js'
export type { ScheduleInfo, ScheduleInput } from './protocol/schedules.js'

// Records of tasks
export type { AsyncTaskInfo, OutputObject, TaskAnswer, TaskProgress, TaskQuestion } from '../machines/records.js'
export type { AsyncTaskStatus, TerminalStatus } from '../machines/task-status.js'

// Messages about tasks
export { AsyncTaskReminderService } from './features/delivery/reminder-service.js'
export { AsyncTaskAutoTrigger } from './features/delivery/auto-trigger.js'
export type { TriggerAgentTurn, TurnDelivery } from './features/delivery/auto-trigger.js'

// What a task runs
export type { RunContext, RunFunction, RunInput, Runner, RunnerDefinition } from './engine/runner.js'
export type { OutputRunner } from './engine/runner.js'
export type { Subagent, SubagentDefinition, SubagentRequest } from './tools/subagents.js'
export { functionRunner } from './runners/function-runner.js'
export { processRunner } from './runners/process-runner.js'
export type { ProcessRunnerOptions } from './runners/process-options.js'

// Tools for a model (more in `agent-tasks/tools`) and slash commands for people
export { TaskTool } from './tools/task-tool.js'
export { CheckAsyncTasksTool } from './tools/check-async-tasks.js'
export type { Tool, ToolContext, ToolResult } from './tools/tool.js'
export { completeCommandLine, runCommandLine } from './host/commands/command.js'
export type { SlashCommand } from './host/commands/command.js'

// Time and errors
export type { Clock } from './system/clock.js'
export { AgentTasksError } from './errors.js'
export { ProcessError } from './runners/process-error.js'
export { TaskCancelledError, TaskFailedError } from './host/task-errors.js'
