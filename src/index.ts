/** The public names of `agent-tasks`, grouped. */

// The registry of background tasks
export { AsyncTaskManager } from './async-tasks/manager.js'
export type { ReadOutputOptions } from './async-tasks/manager.js'
export type { AsyncTaskManagerOptions, QueueOptions } from './async-tasks/manager-options.js'
export type { HeldLease, HoldLease, TaskLease } from './async-tasks/delivery/leases.js'
export type { CommandTaskHistoryQuery, HistoryPage, TaskHistoryQuery } from './kernel/past-tasks.js'
export type { RegistryActor } from './async-tasks/registry-actor.js'
export type { TaskPause } from '../machines/pauses.js'
export type { PauseOptions } from './protocol/async-tasks.js'
export type { RegistryPhase, RegistrySnapshot } from '../machines/registry-snapshot.js'
export type { OutputChunk } from './async-tasks/output/output-log.js'
export type { TaskOutputEvent } from './async-tasks/output/output-stream.js'
export type { OwnerCounts, TaskProgressEvent, TaskQuestionsEvent } from './async-tasks/task-events.js'
export type { ChildTaskInput, RunChildren, WaitOptions, WaitResult } from './engine/children.js'
export type { AskOptions, RunSteps, SleepOptions, StepOptions, WaitForOptions } from './engine/steps.js'
export type { EventTarget } from './async-tasks/steps/steps.js'
export { ownerOfRun } from '../machines/families.js'
export type { ErrorSource, OnError } from './callbacks/error-report.js'
export type {
  CancelOptions,
  LaunchTaskInput,
  RegisterTaskInput,
  RestorableRecord,
  WhenFull,
} from './protocol/async-tasks.js'
export type { TaskQuestionInput } from './protocol/task-questions.js'
export type {
  AsyncTaskInfo,
  ActiveTaskInfo,
  CancelledTaskInfo,
  CommandFields,
  CompletedTaskInfo,
  DeliveryStatus,
  DeliveryTransition,
  FailedTaskInfo,
  HistoryTransition,
  OutputObject,
  OwnerTransition,
  QueuedTaskInfo,
  RunningTaskInfo,
  SettledTaskInfo,
  SpentTotals,
  StatusTransition,
  TaskAnswer,
  TaskAttempt,
  TaskBudget,
  TaskProgress,
  TaskQuestion,
  TaskSession,
  TaskTransition,
} from '../machines/records.js'
export type { AsyncTaskStatus, TerminalStatus } from '../machines/task-status.js'

// Messages about tasks
export { AsyncTaskReminderService } from './async-tasks/delivery/reminder-service.js'
export type { QuestionRef } from '../machines/owed-questions.js'
export type { FollowUpCall } from './async-tasks/output/follow-ups.js'
export type { Asking, QuestionAsker } from './async-tasks/questions/question-askers.js'
export type { DetachResult } from './async-tasks/detaching.js'
export type { MonitorLimits, MonitorSource, TaskMonitor } from './async-tasks/monitors/monitors.js'
export type { MonitorOptions } from './protocol/monitors.js'
export type { SendResult } from './async-tasks/questions/messages.js'
export type { LeasedReminder, ReminderServiceOptions } from './async-tasks/delivery/reminder-service.js'
export { AsyncTaskAutoTrigger } from './async-tasks/delivery/auto-trigger.js'
export type {
  AutoTriggerOptions,
  ReminderSource,
  TriggerAgentTurn,
  TurnDelivery,
} from './async-tasks/delivery/auto-trigger.js'
export type { BusySource } from './async-tasks/delivery/busy.js'
export type { Schedule } from './async-tasks/schedules/schedules.js'
export type { ScheduleInfo, ScheduleInput, ScheduleOptions } from './protocol/schedules.js'
export type { Recovery } from './async-tasks/recovery/recovery.js'
export type { WasDelivered } from './async-tasks/delivery/unknown-deliveries.js'

// Runners and engines
export type { AnswerValue } from './async-tasks/questions/questions.js'
export type {
  FindRunner,
  OutputRunner,
  RunContext,
  RunDurability,
  RunFunction,
  DependencyResult,
  PreviousTask,
  RunInput,
  Runner,
  RunnerDefinition,
  RunResult,
} from './engine/runner.js'
export type { SpentAmount } from './protocol/budget.js'
export type { RetryBackoff, RetryPolicy, RetryReason } from './protocol/retry-policy.js'
export type { ProgramIdentity } from './process-identity.js'
export type { StartedProgram } from './engine/reap.js'
export type {
  Store,
  StoreChange,
  StoreContents,
  StoredCommand,
  StoredCommandTask,
  StoredDelivery,
  StoredFeatureState,
  StoredInstance,
  StoredJson,
  StoredTask,
  StoreTable,
  StoreTables,
} from './store/store.js'
export type { Engine, Outcome, Run, Work, WorkContext } from './engine/engine.js'
export type { Inspect } from './callbacks/inspection.js'
export { createInProcessEngine } from './engine/in-process.js'
export type { InProcessEngineOptions } from './engine/in-process.js'
export { createFairEngine } from './engine/fair-engine.js'

// The end of a host
export { disposeOnSignals } from './engine/dispose-on-signals.js'
export type { DisposeOnSignalsOptions, DisposeTarget } from './engine/dispose-on-signals.js'

// Settings, time and errors
export { parseSetting, settingDefinitions } from './async-tasks/settings.js'
export type { SettingDefinition, SettingName } from './async-tasks/settings.js'
export type { Clock, TimerLabel } from './clock.js'
export {
  AgentTasksError,
  DisposedError,
  FamilyError,
  InstanceError,
  InvalidInputError,
  InvalidSettingError,
  PausedError,
  QuestionWithdrawnError,
  ReservationError,
  TaskIdInUseError,
  TaskLimitError,
  ToolCallError,
} from './errors.js'
export type { InstanceErrorCode, QueueBytes } from './errors.js'

// Runners for functions and programs
export { functionRunner } from './runners/function-runner.js'
export type { FunctionRunnerOptions } from './runners/function-runner.js'
export { processRunner } from './runners/process-runner.js'
export type { ProcessRunnerOptions } from './runners/process-options.js'
export { ProcessError } from './runners/process-error.js'
export type { ProcessFailure } from './runners/process-error.js'
export type { OutputFormat, ParseFunction, ProcessDetails } from './runners/output-parsers.js'

// Tools for a model (more in `agent-tasks/tools`) and slash commands for people
export { TaskTool } from './tools/task-tool.js'
export { CheckAsyncTasksTool } from './tools/check-async-tasks.js'
export { WaitForAsyncTasksTool } from './tools/wait-for-async-tasks.js'
export type { ForegroundAbort } from './tools/task-tool-options.js'
export type { MonitoredCommand } from './tools/monitor.js'
export type { OutputUpdate, Tool, ToolContext, ToolError, ToolInput, ToolResult } from './tools/tool.js'
export type {
  ResolveSubagent,
  Subagent,
  SubagentDefinition,
  SubagentEntry,
  SubagentRequest,
  SubagentRunner,
} from './tools/subagents.js'
export { completeCommandLine, runCommandLine } from './commands/command.js'
export type { CommandResult, SlashCommand } from './commands/command.js'
export { createTaskCommands } from './commands/task-commands.js'
export type { TaskCommandsOptions } from './commands/task-commands.js'

// All of the above, wired for one agent host
export { createAgentTasks } from './host/agent-tasks.js'
export type {
  AgentTasks,
  AgentTasksWithCommands,
  AgentToolsWithCommands,
  WithMonitor,
  WithRunCommand,
  WithSchedule,
} from './host/agent-tasks.js'
export type { AgentTasksOptions, AgentTasksSettings, CommandsOptions } from './host/agent-tasks-options.js'
export type { AgentTools, OptionalTools } from './tools/tool-list.js'
export type { LaunchOptions } from './host/launch.js'
export type { BackgroundMode, BackgroundOptions, BackgroundTask } from './host/background/background-types.js'
export type { InBackground, McpTool } from './host/background/background-types.js'
export type { TaskHandle } from './host/task-handle.js'
export type { TaskHandleEvent } from './host/handle-events.js'
export type { OutputOf, OutputOfResult, PlainData, RunReturning, Subagents } from './host/subagent-outputs.js'
export { TaskCancelledError, TaskFailedError } from './host/task-errors.js'
export type { AfterTurn, Turn, TurnOutcome, WithTurn } from './host/turns.js'
export { createTurns } from './host/turn-queue.js'
export type { AgentTurns, Respond, TakeTurnOptions } from './host/turn-queue.js'
