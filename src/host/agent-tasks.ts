/** Creates the background tasks of one agent host: manager, reminders, auto-trigger, tools and slash commands. */
import { AsyncTaskAutoTrigger, type TriggerAgentTurn } from '../features/delivery/auto-trigger.js'
import type { BusySource } from '../features/delivery/busy.js'
import type { DetachResult } from '../features/foreground/detaching.js'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import type { EventTarget } from '../features/steps/steps.js'
import type { MonitorSource, TaskMonitor } from '../features/monitors/monitors.js'
import type { MonitorLimits } from '../protocol/monitors.js'
import type { HistoryPage, TaskHistoryQuery } from '../store/history/past-tasks.js'
import type { TaskPause } from '../../machines/registry-events.js'
import type { SettledTaskInfo } from '../../machines/records.js'
import type { PauseOptions } from '../protocol/async-tasks.js'
import type { Recovery } from '../async-tasks/recovery/recovery.js'
import type { Schedule } from '../features/schedules/schedules.js'
import { CONVERSATION_LIMITS } from '../features/limits/owner-limits.js'
import { AsyncTaskReminderService } from '../features/delivery/reminder-service.js'
import { parseSetting, type SettingName } from '../async-tasks/settings.js'
import { areOfCluster, type ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { SlashCommand } from './commands/command.js'
import { ownerOfRun } from '../../machines/run-owner.js'
import { createTaskCommands } from './commands/task-commands.js'
import { resolveRunner } from '../engine/definition.js'
import type { FindRunner } from '../engine/runner.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError } from '../errors.js'
import type { ScheduleInfo, ScheduleInput, ScheduleOptions } from '../protocol/schedules.js'
import type { MonitorOptions } from '../protocol/monitors.js'
import { checkOptions, pickOptions, withDefaults } from '../protocol/option-checks.js'
import { checkCommandPolicy, commandPolicyTypes, type CommandPolicy } from '../tools/command-policy.js'
import { findCommandRunner } from '../tools/cluster-command-run.js'
import { subagentOffer } from '../tools/offered-subagents.js'
import { subagentEntry } from '../tools/subagents.js'
import { startMonitor, type MonitoredCommand } from '../features/monitors/tool.js'
import { withOverdue } from '../tools/overdue-notifications.js'
import type { Tool } from '../tools/tool.js'
import { foregroundOptionTypes, type ForegroundOptions } from '../tools/task-tool-options.js'
import type { ToolSetting } from '../tools/tool-descriptor.js'
import { createHostTools, type AgentTools, type OptionalTools } from '../tools/tool-list.js'
import { tracedTools } from '../tools/traced-tools.js'
import {
  agentTasksOptionTypes,
  managerTypes,
  readSettings,
  type AgentTasksOptions,
  type CommandsOptions,
} from './agent-tasks-options.js'
import type {
  Conversation,
  ConversationOptions,
  ConversationPage,
  ConversationQuery,
} from './conversations/conversation.js'
import { Conversations } from './conversations/conversations.js'
import { handleOf, launchTask, type LaunchArguments } from './launch.js'
import { backgroundTool } from './background/background.js'
import type { BackgroundMode, BackgroundOptions, InBackground } from './background/background-types.js'
import type { OutputOf, Subagents } from './subagent-outputs.js'
import type { TaskHandle } from './task-handle.js'
import { Turns, type AfterTurn, type Turn, type TurnOutcome, type WithTurn } from './turns.js'

/** The result of `createAgentTasks`. */
export interface AgentTasks<Known extends Subagents = Subagents, Answer = unknown> {
  /**
   * Starts a task of one of `subagents` and returns its handle at once. If you read `handle.result`, your code receives the result; otherwise the
   * owner of the task receives it. With `whenFull: 'queue'`, the task waits while no slot is free.
   * @param name a key of `subagents`. Names that only `resolveSubagent` knows are not accepted
   * @param goal what the subagent shall achieve, in words
   * @throws INVALID_INPUT for an invalid option, or for an unknown subagent (the message lists the known ones)
   * @throws TASK_LIMIT when no slot is free and the task may not wait, or when the queue is full
   * @throws TASK_ID_IN_USE, and the errors of families, as `AsyncTaskManager.launch` does
   * @throws DISPOSED after `dispose`. With each of these errors, no task is launched
   */
  launch<Name extends keyof Known & string>(
    name: Name,
    goal: string,
    ...options: LaunchArguments<Known[Name]>
  ): TaskHandle<OutputOf<Known[Name]>>
  /** Continues an ended task and returns the handle of the new task. Throws the errors of `AsyncTaskManager.continueTask`. */
  readonly continue: (task: string | SettledTaskInfo, message: string) => TaskHandle
  /**
   * Moves a foreground task to the background (`AsyncTaskManager.detachTask`). The tool call that waits for the task returns at once, and the result
   * is delivered later.
   * @returns whether the task was moved. If not, the reason: the task is unknown, has ended, or already runs in the background
   * @throws TASK_LIMIT when no slot is free; the task then stays in the foreground
   */
  readonly detach: (id: string) => DetachResult
  /**
   * Wraps a tool, so that its calls can run as background tasks. Accepts tools of the AI SDK, OpenAI Agents, LangChain, MCP (`McpTool`) and this
   * package.
   *
   * With the mode `choice`, the model decides for each call; with `always`, every call runs in the background. A foreground call returns and throws
   * the same as the tool. It moves to the background after `afterSeconds`, or with `detach`. The result of a background call is delivered later.
   * After a crash, the task of a running call fails with `INTERRUPTED`.
   * @returns a tool of the same kind. With `choice`, its input has the parameter `run_in_background`. Its result may be a `BackgroundTask`
   * @throws INVALID_INPUT for an invalid option, an unknown kind of tool, or a tool that already has the parameter
   * @throws INVALID_SETTING for a time out of its range
   */
  background<T, const Mode extends BackgroundMode>(tool: T, options: BackgroundOptions<Mode>): InBackground<T, Mode>
  /** Pauses an owner, or all owners without an argument: no further task starts until `resume` (`AsyncTaskManager.pause`). */
  readonly pause: (owner?: string, options?: PauseOptions) => TaskPause
  /** Ends the pause of an owner, or the pause of all owners without an argument (`AsyncTaskManager.resume`). Returns false if there is no such pause. */
  readonly resume: (owner?: string) => boolean
  /** Returns the current pauses. */
  readonly pauses: () => readonly TaskPause[]
  /**
   * Sends an event to the runs that wait for it (`AsyncTaskManager.emit`). Without a target, the event goes to the tasks of the host's owner.
   * @returns the ids of the tasks that received the event, after it was stored
   * @throws the errors of `AsyncTaskManager.emit`
   */
  readonly emit: (event: string, value?: unknown, target?: EventTarget) => Promise<readonly string[]>
  /** Schedules a message or a task (`AsyncTaskManager.schedule`). The default owner is that of the host. */
  readonly schedule: (input: ScheduleInput) => Schedule
  /** Returns the schedules of an owner, or all schedules (`AsyncTaskManager.schedules`). */
  readonly schedules: (owner?: string) => ScheduleInfo[]
  /** Cancels a schedule (`AsyncTaskManager.cancelSchedule`). */
  readonly cancelSchedule: (id: string) => boolean
  /**
   * Returns a conversation, and opens it if it is not open. The same id gives the same object while the conversation is open: it is dropped when it has
   * been idle for `conversationIdleMs`, which loses nothing.
   * @param id the owner of the tasks of this conversation
   * @throws INVALID_INPUT for an invalid id or option, and for other options than those with which the conversation was opened
   * @throws DISPOSED after `dispose`
   */
  conversation(id: string, options?: ConversationOptions<Answer>): Conversation<Known, Answer>
  /**
   * Returns a page of the conversations that are open, or have active tasks or owed results, in the order of their ids.
   */
  readonly conversations: (query?: ConversationQuery) => ConversationPage
  /** The manager of the tasks. */
  readonly manager: AsyncTaskManager
  /**
   * Returns ended tasks, newest first. If the store has a history, they include tasks that are not in memory any more. Default: the tasks of all
   * owners.
   * @throws INVALID_INPUT for an invalid query
   * @throws StoreError when the history cannot be read
   */
  readonly history: (query?: TaskHistoryQuery) => Promise<HistoryPage<SettledTaskInfo>>
  /**
   * Watches a task, a program or a file, and wakes an owner when a line matches (`AsyncTaskManager.monitor`). Default owner: that of the host. A
   * program must be allowed by `commands`; it ends with its monitor. With each of the errors, no monitor is started.
   * @throws INVALID_INPUT for an invalid source or option
   * @throws TASK_LIMIT when no slot is free for the program
   * @throws AgentTasksError with the code `MONITOR_LIMIT` when there are too many monitors
   * @throws DISPOSED after `dispose`
   */
  readonly monitor: (source: MonitorSource | MonitoredCommand, options: MonitorOptions) => TaskMonitor
  /** Returns the monitors of an owner, or all monitors, in the order of their start. */
  readonly monitors: (owner?: string) => TaskMonitor[]
  /** The service that writes the texts for the model about results and running tasks. */
  readonly reminders: AsyncTaskReminderService
  /** The tools for the model, each `{ name, description, inputSchema, execute }`. */
  readonly tools: AgentTools
  /**
   * Returns tools for an agent that runs as a subagent. `taskId` is the task of its run. The tasks that this agent launches belong to that run, and
   * it sees no other tasks. Their results go to the owner `ownerOfRun(taskId)`, so use `withTurn(run, ownerOfRun(taskId))`.
   */
  readonly toolsOfRun: (taskId: string) => AgentTools
  /** The slash commands for people: `/tasks`, `/task`, `/background`, `/pause`, `/resume`, `/schedules`, `/schedule`, `/monitors` and `/monitor`. */
  readonly commands: readonly SlashCommand[]
  /** Returns `manager`. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Returns `reminders`. */
  readonly getAsyncTaskReminderService: () => AsyncTaskReminderService
  /** Delivers results to the agent when it is idle. A later call replaces both callbacks. Returns a function that ends the delivery until the next call. */
  readonly setupAsyncTaskAutoTrigger: (isAgentBusy: BusySource, triggerAgentTurn: TriggerAgentTurn) => () => void
  /** Reports that the agent has become idle. Call it if `isAgentBusy` is a function, because the manager can then only poll it. */
  readonly notifyIdle: () => void
  /** Returns the current value of a setting. */
  readonly getSetting: (name: SettingName) => number
  /**
   * Changes a setting.
   * @throws INVALID_SETTING for a value out of range; the old value stays
   */
  readonly setSetting: (name: SettingName, value: number | string) => void
  /**
   * Returns the texts that the next turn of an owner's agent should contain. Default owner: that of the host. Leases the undelivered results until
   * `afterTurn`, so that no other message contains them.
   */
  readonly beforeTurn: (owner?: string) => Turn
  /** Ends the lease of `beforeTurn`. If the turn was accepted, its results count as delivered. Otherwise they are delivered again. */
  readonly afterTurn: AfterTurn
  /** Calls `run` with the result of `beforeTurn`. If its promise resolves, the results count as delivered. If it rejects, they are delivered again. */
  readonly withTurn: WithTurn
  /** Resolves when the tasks of an earlier process were restored from the store; without a store, at once. */
  readonly recovered: Promise<Recovery>
  /** Confirms that the transcript of the agent contains a message, so that its results count as delivered (`AsyncTaskManager.confirm`). */
  readonly confirm: (deliveryId: string) => boolean
  /** Delivers the results of a message again (`AsyncTaskManager.redeliver`). */
  readonly redeliver: (deliveryId: string) => boolean
  /**
   * Stops all callbacks, and ends the tasks as `AsyncTaskManager.dispose` does: without a store they are cancelled, with a store they are kept for the
   * next process. Resolves when every run has ended, or its grace period has passed.
   * @param options `cancel`: cancel the active tasks although there is a store. Default: false
   * @throws INVALID_INPUT for an invalid option
   */
  readonly dispose: (options?: { readonly cancel?: boolean }) => Promise<void>
  /** Calls `dispose`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** The result of `createAgentTasks` with the option `taskManager`. */
export interface AgentTasksWithCommands<Known extends Subagents = Subagents, Answer = unknown> extends AgentTasks<
  Known,
  Answer
> {
  /** The tools for the model, including `submit_commands`. */
  readonly tools: AgentTools & { readonly submit_commands: OptionalTools['submit_commands'] }
}

/**
 * Creates the background tasks of one agent host: a task manager, and the reminders, auto-trigger, tools and slash commands that use it.
 * @throws INVALID_INPUT for an invalid option
 * @throws INVALID_SETTING for an unknown setting, or a value out of range
 * @example
 * ```ts
 * const turns = createTurns(async (text) => console.log('To the model:', text)) // call your model here
 * const tasks = createAgentTasks({
 *   subagents: { count: async ({ goal }) => `${goal} has ${goal.length} characters` },
 *   isAgentBusy: turns.isBusy$,
 *   triggerAgentTurn: turns.triggerAgentTurn,
 * })
 * const { final_message } = await tasks.launch('count', 'hello').result // your code launches a task
 * await tasks.tools.task.execute({ subagent_name: 'count', goal_prompt: 'world', async: true }) // the model launches one
 * await tasks.manager.onIdle() // every task has ended, and every result was delivered
 * await tasks.dispose()
 * ```
 */
export function createAgentTasks<
  Commands extends TaskManager | ClusterTasks | undefined = undefined,
  Programs extends CommandsOptions | undefined = undefined,
  Known extends Subagents = Subagents,
  Scheduling extends ScheduleOptions | undefined = undefined,
  Watching extends MonitorLimits | undefined = undefined,
  Answer = unknown,
>(
  options: AgentTasksOptions<Commands, Programs, Known, Scheduling, Watching, Answer> = {},
): (Commands extends TaskManager | ClusterTasks ? AgentTasksWithCommands<Known, Answer> : AgentTasks<Known, Answer>) &
  (Programs extends CommandsOptions
    ? { readonly tools: { readonly run_command: OptionalTools['run_command'] } }
    : unknown) &
  (Scheduling extends ScheduleOptions
    ? { readonly tools: { readonly schedule: OptionalTools['schedule'] } }
    : unknown) &
  (Watching extends MonitorLimits ? { readonly tools: { readonly monitor: OptionalTools['monitor'] } } : unknown) {
  return wire(options) as AgentTasksWithCommands<Known, Answer> & { readonly tools: OptionalTools }
}

function wire(options: AgentTasksOptions): AgentTasks {
  checkOptions(options, agentTasksOptionTypes)
  const { subagents, owner, settings, maxMessageChars, turnTimeoutMs, maxDelayMs, graceMs, conversationIdleMs } =
    withDefaults(options, agentTasksOptionTypes)
  const { resolveSubagent, taskManager, commands, isAgentBusy, triggerAgentTurn, autoTrigger } = options
  if ((isAgentBusy === undefined) !== (triggerAgentTurn === undefined)) {
    const [given, missing] =
      isAgentBusy === undefined ? ['triggerAgentTurn', 'isAgentBusy'] : ['isAgentBusy', 'triggerAgentTurn']
    throw new InvalidInputError(`options.${missing}`, undefined, `a value, because ${given} has one`)
  }
  const { respond, openConversation } = options
  if (respond !== undefined && triggerAgentTurn !== undefined) {
    throw new InvalidInputError('options.respond', respond, 'no value, because triggerAgentTurn has one')
  }
  if (openConversation !== undefined && respond === undefined) {
    throw new InvalidInputError('options.respond', undefined, 'a value, because openConversation has one')
  }
  if (options.keepTurns !== undefined && respond === undefined) {
    throw new InvalidInputError('options.respond', undefined, 'a value, because keepTurns has one')
  }
  if (commands !== undefined) checkCommandPolicy(commands, 'options.commands')
  const current = readSettings(settings)
  const findCommands =
    taskManager !== undefined && areOfCluster(taskManager) ? findCommandRunner(taskManager) : undefined
  const findRunner: FindRunner =
    options.findRunner ??
    ((name) => {
      const subagent = Object.hasOwn(subagents, name) ? subagents[name] : undefined
      return subagent && resolveRunner(subagent)
    })
  const manager = new AsyncTaskManager({
    ...pickOptions<Omit<AsyncTaskManagerOptions, 'maxCommands'>>(options, managerTypes),
    ...(commands?.maxCommands !== undefined && { maxCommands: commands.maxCommands }),
    maxAsyncTasks: options.maxAsyncTasks ?? current['task-max-async'],
    ownerLimits: { ...(respond && CONVERSATION_LIMITS), ...options.ownerLimits },
    findRunner: (name) => findCommands?.(name) ?? findRunner(name),
  })
  const policy = commands && pickOptions<CommandPolicy>(commands, commandPolicyTypes)
  const reminders = new AsyncTaskReminderService(manager, { maxMessageChars })
  const turns = new Turns(manager, reminders, { owner, timeoutMs: turnTimeoutMs })
  const getAsyncTaskManager = (): AsyncTaskManager => manager
  /** Wraps the tools of an owner. If a result or question has waited for the owner longer than `maxDelayMs`, the next tool result includes it. */
  const addOverdue = <Tools extends AgentTools>(tools: Tools, of: string): Tools =>
    Object.fromEntries(
      Object.entries(tools).map(([name, tool]) => [
        name,
        withOverdue(tool as Tool, { manager, reminders, owner: of, maxDelayMs }),
      ]),
    ) as Tools
  const launching = {
    defaultTimeoutSeconds: () => current['task-default-timeout-seconds'],
    maxTimeoutSeconds: () => current['task-max-timeout-seconds'],
    ...pickOptions<ForegroundOptions>(options, foregroundOptionTypes),
  }
  const shown = { getAsyncTaskManager, maxMessageChars }
  const lookup = {
    resolveSubagent: (name: string) => (Object.hasOwn(subagents, name) ? subagents[name] : resolveSubagent?.(name)),
    // If there is only `resolveSubagent`, the names it knows cannot be listed.
    ...((resolveSubagent === undefined || Object.keys(subagents).length > 0) && {
      listSubagents: () => Object.entries(subagents).map(([name, subagent]) => subagentEntry(name, subagent)),
    }),
  }
  manager.reads.use(subagentOffer).offer = {
    owner,
    list: () => new Map(Object.entries(subagents).map(([name, subagent]) => [name, resolveRunner(subagent)])),
    launching: (_owner, launch) => launch(),
  }
  const { telemetry } = options
  /** Returns the tools for the agent of an owner. They show only the tasks of this owner and of its runs. */
  const toolsOf = (of: string, setting: Omit<ToolSetting, 'owned' | 'shown' | 'launching'>): AgentTools => {
    const owned = { ...shown, owner: of }
    const tools = createHostTools({ ...setting, launching, shown: owned, owned })
    return addOverdue(telemetry === undefined ? tools : tracedTools(tools, telemetry), of)
  }
  let trigger: AsyncTaskAutoTrigger | undefined
  let unsubscribe: (() => void) | undefined

  const setupAsyncTaskAutoTrigger = (busy: BusySource, turn: TriggerAgentTurn): (() => void) => {
    if (trigger === undefined) {
      trigger = new AsyncTaskAutoTrigger(manager, reminders, busy, turn, { ...autoTrigger, owner })
    } else trigger.updateCallbacks(busy, turn)
    const current = (unsubscribe ??= trigger.subscribe())
    return () => {
      current()
      if (unsubscribe === current) unsubscribe = undefined
    }
  }
  if (isAgentBusy !== undefined && triggerAgentTurn !== undefined) {
    setupAsyncTaskAutoTrigger(isAgentBusy, triggerAgentTurn)
  }

  const fullToolsOf = (of: string): AgentTools =>
    toolsOf(of, {
      subagents: lookup,
      hasSchedules: options.schedules !== undefined,
      ...omitUndefined({ taskManager, commands: policy, monitors: options.monitors }),
    })
  const launchFor =
    (of: string): AgentTasks['launch'] =>
    (name, goal, ...[given]) =>
      launchTask({ manager, subagents, owner: of }, name, goal, given)
  const conversations = new Conversations({
    manager,
    reminders,
    respond,
    openConversation,
    graceMs,
    idleMs: conversationIdleMs,
    keepTurns: options.keepTurns,
    keepsMessages: options.wasDelivered !== undefined,
    autoTrigger,
    toolsOf: fullToolsOf,
    launchFor,
  })
  const dispose: AgentTasks['dispose'] = (options) => {
    const ended = manager.dispose(options)
    return Promise.all([ended, conversations.dispose()]).then(() => undefined)
  }
  return {
    launch: launchFor(owner),
    conversation: (id, given) => conversations.get(id, given),
    conversations: (query) => conversations.page(query),
    continue: (task, message) => manager.reads.batch(() => handleOf(manager, manager.continueTask(task, message))),
    manager,
    background: (tool, given) => backgroundTool({ ...shown, ...launching, owner }, tool, given),
    detach: (id) => manager.detachTask(id),
    pause: (of, how) => manager.pause(of, how),
    resume: (of) => manager.resume(of),
    pauses: () => manager.pauses(),
    emit: (event, value, target = { owner }) => manager.emit(event, value, target),
    schedule: (input) => manager.schedule({ owner, ...input }),
    schedules: (of) => manager.schedules(of),
    cancelSchedule: (id) => manager.cancelSchedule(id),
    history: (query) => manager.history(query),
    monitor: (source, given) => startMonitor(manager, policy, source, { ...given, owner: given.owner ?? owner }),
    monitors: (of) => manager.monitors(of),
    reminders,
    tools: fullToolsOf(owner),
    toolsOfRun: (taskId) => {
      const of = ownerOfRun(taskId)
      return toolsOf(of, { subagents: { ...lookup, parentId: taskId } })
    },
    commands: createTaskCommands({ getAsyncTaskManager, owner }),
    getAsyncTaskManager,
    getAsyncTaskReminderService: () => reminders,
    setupAsyncTaskAutoTrigger,
    notifyIdle: () => trigger?.notifyIdle(),
    getSetting: (name) => (name === 'task-max-async' ? manager.getMaxAsyncTasks() : current[name]),
    setSetting: (name, value) => {
      const parsed = parseSetting(name, value)
      if (name === 'task-max-async') manager.setMaxAsyncTasks(parsed)
      current[name] = parsed
    },
    beforeTurn: (turnOwner) => turns.before(turnOwner),
    afterTurn: (ownerOrOutcome?: string | TurnOutcome, outcome?: TurnOutcome) => turns.after(ownerOrOutcome, outcome),
    withTurn: (run, turnOwner) => turns.with(run, turnOwner),
    recovered: manager.recovered,
    confirm: (deliveryId) => manager.confirm(deliveryId),
    redeliver: (deliveryId) => manager.redeliver(deliveryId),
    dispose,
    [Symbol.asyncDispose]: () => dispose(),
  }
}
