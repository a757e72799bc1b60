/** Background tasks for one agent host: manager, reminders, auto-trigger, tools and slash commands. */
import { AsyncTaskAutoTrigger, type TriggerAgentTurn } from '../async-tasks/delivery/auto-trigger.js'
import type { BusySource } from '../async-tasks/delivery/busy.js'
import type { DetachResult } from '../async-tasks/detaching.js'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import type { EventTarget } from '../async-tasks/steps/steps.js'
import type { MonitorLimits, MonitorSource, TaskMonitor } from '../async-tasks/monitors/monitors.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import type { HistoryPage, TaskHistoryQuery } from '../kernel/past-tasks.js'
import type { TaskPause } from '../../machines/pauses.js'
import type { SettledTaskInfo } from '../../machines/records.js'
import type { PauseOptions } from '../protocol/async-tasks.js'
import type { Recovery } from '../async-tasks/recovery/recovery.js'
import type { Schedule } from '../async-tasks/schedules/schedules.js'
import { AsyncTaskReminderService } from '../async-tasks/delivery/reminder-service.js'
import { parseSetting, type SettingName } from '../async-tasks/settings.js'
import { areOfCluster, type ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { SlashCommand } from '../commands/command.js'
import { ownerOfRun } from '../../machines/families.js'
import { createTaskCommands } from '../commands/task-commands.js'
import { flatRunner } from '../engine/definition.js'
import type { FindRunner } from '../engine/runner.js'
import { defined } from '../defined.js'
import { InvalidInputError } from '../errors.js'
import type { ScheduleInfo, ScheduleInput, ScheduleOptions } from '../protocol/schedules.js'
import type { MonitorOptions } from '../protocol/monitors.js'
import { checkOptions, pickOptions } from '../protocol/option-checks.js'
import { checkCommandPolicy, commandPolicyTypes } from '../tools/command-policy.js'
import { findCommandRunner } from '../tools/cluster-command-run.js'
import { subagentOffer } from '../tools/offered-subagents.js'
import { definitionOf, subagentEntry } from '../tools/subagents.js'
import { startMonitor, type MonitoredCommand } from '../tools/monitor.js'
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
import { handleOf, launchTask, type LaunchOptions } from './launch.js'
import { backgroundTool } from './background/background.js'
import type { BackgroundMode, BackgroundOptions, InBackground } from './background/background-types.js'
import type { OutputOf, Subagents } from './subagent-outputs.js'
import type { TaskHandle } from './task-handle.js'
import { DEFAULT_TURN_TIMEOUT_MS, Turns, type AfterTurn, type Turn, type TurnOutcome, type WithTurn } from './turns.js'

const DEFAULT_MAX_DELAY_MS = 60_000

/** The result of `createAgentTasks`. */
export interface AgentTasks<Known extends Subagents = Subagents> {
  /**
   * Starts a task of one of `subagents` and returns its handle at once. If you read `handle.result`, you receive the result; otherwise the owner
   * does. With `whenFull: 'queue'` the task waits if no slot is free.
   * @param name a key of `subagents`; only the tool `task` uses `resolveSubagent`
   * @param goal what to achieve, in words
   * @throws InvalidInputError for a wrong option or an unknown subagent, with a list of the known ones; TaskLimitError if no slot is free and the
   *   task does not wait, or the queue is full; DisposedError; TaskIdInUseError and FamilyError as for `manager.launch`. No task was launched then
   */
  launch<Name extends keyof Known & string>(
    name: Name,
    goal: string,
    options?: LaunchOptions<Known[Name]>,
  ): TaskHandle<OutputOf<Known[Name]>>
  /** Continues an ended task and returns the handle of the new task. Throws like `AsyncTaskManager.continueTask`. */
  readonly continue: (task: string | SettledTaskInfo, message: string) => TaskHandle
  /**
   * Moves a task that a tool call waits for to the background (`AsyncTaskManager.detachTask`). The call returns, and the result is delivered later.
   * @returns whether it was moved. If not, the reason: it is unknown, has ended, or already runs in the background
   * @throws TaskLimitError if no slot is free; the task stays in the foreground then
   */
  readonly detach: (id: string) => DetachResult
  /**
   * Wraps a tool of the AI SDK, OpenAI Agents, LangChain, MCP (`McpTool`) or this package, so that its calls can run as tasks: as the model chooses
   * (`choice`), or always (`always`). A foreground call returns and throws what the tool does, and moves to the background after `afterSeconds` or
   * with `detach`. The result of a background call is delivered later. After a crash its task has failed (`INTERRUPTED`).
   * @returns a tool of the same kind. Its input has the parameter `run_in_background`, and its result may be a `BackgroundTask`
   * @throws InvalidInputError for a wrong option, an unknown kind of tool, or a tool that already has that parameter; InvalidSettingError for a wrong
   *   time
   */
  background<T, const Mode extends BackgroundMode>(tool: T, options: BackgroundOptions<Mode>): InBackground<T, Mode>
  /** Starts no more tasks of an owner (default: of all owners) until `resume` (`AsyncTaskManager.pause`). */
  readonly pause: (owner?: string, options?: PauseOptions) => TaskPause
  /** Ends the pause of an owner. Without an owner, ends the pause of all. Returns false if there is none (`AsyncTaskManager.resume`). */
  readonly resume: (owner?: string) => boolean
  /** Returns the current pauses. */
  readonly pauses: () => readonly TaskPause[]
  /**
   * Sends an event to runs that wait for it (`AsyncTaskManager.emit`). Default: to the tasks of the host's owner.
   * @returns the ids of the tasks that received it, once that is stored
   * @throws as `AsyncTaskManager.emit`
   */
  readonly emit: (event: string, value?: unknown, target?: EventTarget) => Promise<readonly string[]>
  /** Schedules a message or a task (`AsyncTaskManager.schedule`). Default owner: that of the host. */
  readonly schedule: (input: ScheduleInput) => Schedule
  /** Returns the schedules of an owner, or all schedules (`AsyncTaskManager.schedules`). */
  readonly schedules: (owner?: string) => ScheduleInfo[]
  /** Cancels a schedule (`AsyncTaskManager.cancelSchedule`). */
  readonly cancelSchedule: (id: string) => boolean
  /** The manager of the tasks. */
  readonly manager: AsyncTaskManager
  /**
   * Returns ended tasks, newest first. Includes tasks that are no longer in memory if the store has a history. Default: the tasks of all owners.
   * @throws InvalidInputError for an invalid query; StoreError when the history cannot be read
   */
  readonly history: (query?: TaskHistoryQuery) => Promise<HistoryPage<SettledTaskInfo>>
  /**
   * Wakes an owner (default: `owner`) when a task, a program or a file writes a matching line (`AsyncTaskManager.monitor`). A program is started like
   * one of `run_command`, within the rules of `commands`, and ends with its monitor.
   * @throws InvalidInputError, TaskLimitError, DisposedError, AgentTasksError `MONITOR_LIMIT`; no monitor was started then
   */
  readonly monitor: (source: MonitorSource | MonitoredCommand, options: MonitorOptions) => TaskMonitor
  /** Returns the monitors of an owner, or all monitors, in the order in which they were started. */
  readonly monitors: (owner?: string) => TaskMonitor[]
  /** The reminder service. */
  readonly reminders: AsyncTaskReminderService
  /** The tools for the model, each `{ name, description, inputSchema, execute }`. */
  readonly tools: AgentTools
  /**
   * Returns the tools for the agent of a run. The tasks that it launches belong to that run, and it sees no others. Their results go to
   * `ownerOfRun(taskId)`: use `withTurn(run, ownerOfRun(taskId))`.
   */
  readonly toolsOfRun: (taskId: string) => AgentTools
  /** The slash commands for people: `/tasks`, `/task`, `/background`, `/pause`, `/resume`, `/schedules`, `/schedule`, `/monitors` and `/monitor`. */
  readonly commands: readonly SlashCommand[]
  /** Returns `manager`. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Returns `reminders`. */
  readonly getAsyncTaskReminderService: () => AsyncTaskReminderService
  /**
   * Delivers results to the agent when it is idle. Another call replaces both callbacks. Returns an unsubscribe function, which has no effect on
   * later calls.
   */
  readonly setupAsyncTaskAutoTrigger: (isAgentBusy: BusySource, triggerAgentTurn: TriggerAgentTurn) => () => void
  /** Notifies the manager that the agent is idle, for a host whose `isAgentBusy` is a function. */
  readonly notifyIdle: () => void
  /** Returns the current value of a setting. */
  readonly getSetting: (name: SettingName) => number
  /**
   * Changes a setting.
   * @throws InvalidSettingError for a value out of range; the old value stays
   */
  readonly setSetting: (name: SettingName, value: number | string) => void
  /** Returns what the next turn of an owner's agent (default: `owner`) should contain. Leases the undelivered results until `afterTurn`. */
  readonly beforeTurn: (owner?: string) => Turn
  /** Ends the lease of `beforeTurn`: the results count as delivered, or are delivered again. */
  readonly afterTurn: AfterTurn
  /** Runs a function between `beforeTurn` and `afterTurn`. Whether its promise resolves says whether the model received the reminder. */
  readonly withTurn: WithTurn
  /** Resolves when the tasks of an earlier process have been restored from the store; at once without a store. */
  readonly recovered: Promise<Recovery>
  /** Confirms that a message is in the host's transcript (`AsyncTaskManager.confirm`). */
  readonly confirm: (deliveryId: string) => boolean
  /** Delivers the results of a message again (`AsyncTaskManager.redeliver`). */
  readonly redeliver: (deliveryId: string) => boolean
  /** Cancels all tasks and stops all callbacks. Resolves when every run has ended or its grace period has passed. */
  readonly dispose: () => Promise<void>
  /** Same as `dispose`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** The result of `createAgentTasks` with a `taskManager`. */
export interface AgentTasksWithCommands<Known extends Subagents = Subagents> extends AgentTasks<Known> {
  /** The tools for the model, including `submit_commands`. */
  readonly tools: AgentTools & { readonly submit_commands: OptionalTools['submit_commands'] }
}

/**
 * Creates the background tasks of one agent host: a manager, and the reminders, auto-trigger, tools and commands that use it.
 * @throws InvalidSettingError, InvalidInputError for an invalid option
 */
export function createAgentTasks<
  Commands extends TaskManager | ClusterTasks | undefined = undefined,
  Programs extends CommandsOptions | undefined = undefined,
  Known extends Subagents = Subagents,
  Scheduling extends ScheduleOptions | undefined = undefined,
  Watching extends MonitorLimits | undefined = undefined,
>(
  options: AgentTasksOptions<Commands, Programs, Known, Scheduling, Watching> = {},
): (Commands extends TaskManager | ClusterTasks ? AgentTasksWithCommands<Known> : AgentTasks<Known>) &
  (Programs extends CommandsOptions
    ? { readonly tools: { readonly run_command: OptionalTools['run_command'] } }
    : unknown) &
  (Scheduling extends ScheduleOptions
    ? { readonly tools: { readonly schedule: OptionalTools['schedule'] } }
    : unknown) &
  (Watching extends MonitorLimits ? { readonly tools: { readonly monitor: OptionalTools['monitor'] } } : unknown) {
  return wire(options) as AgentTasksWithCommands<Known> & { readonly tools: OptionalTools }
}

function wire(options: AgentTasksOptions): AgentTasks {
  checkOptions(options, agentTasksOptionTypes)
  const {
    subagents = {},
    resolveSubagent,
    owner = DEFAULT_OWNER,
    taskManager,
    commands,
    settings = {},
    maxMessageChars,
  } = options
  const { isAgentBusy, triggerAgentTurn, autoTrigger } = options
  if ((isAgentBusy === undefined) !== (triggerAgentTurn === undefined)) {
    const [given, missing] =
      isAgentBusy === undefined ? ['triggerAgentTurn', 'isAgentBusy'] : ['isAgentBusy', 'triggerAgentTurn']
    throw new InvalidInputError(`options.${missing}`, undefined, `a value, because ${given} has one`)
  }
  if (commands !== undefined) checkCommandPolicy(commands, 'options.commands')
  const current = readSettings(settings)
  const timeoutMs = options.turnTimeoutMs ?? DEFAULT_TURN_TIMEOUT_MS
  const findCommands =
    taskManager !== undefined && areOfCluster(taskManager) ? findCommandRunner(taskManager) : undefined
  const findRunner: FindRunner =
    options.findRunner ??
    ((name) => {
      const subagent = Object.hasOwn(subagents, name) ? subagents[name] : undefined
      return subagent && definitionOf(subagent)
    })
  const manager = new AsyncTaskManager({
    ...pickOptions(options, managerTypes),
    ...(commands?.maxCommands !== undefined && { maxCommands: commands.maxCommands }),
    maxAsyncTasks: options.maxAsyncTasks ?? current['task-max-async'],
    findRunner: (name) => findCommands?.(name) ?? findRunner(name),
  })
  const policy = commands && pickOptions(commands, commandPolicyTypes)
  const limits = maxMessageChars === undefined ? {} : { maxMessageChars }
  const reminders = new AsyncTaskReminderService(manager, limits)
  const turns = new Turns(manager, reminders, { owner, timeoutMs })
  const getAsyncTaskManager = (): AsyncTaskManager => manager
  const maxDelayMs = options.maxDelayMs ?? DEFAULT_MAX_DELAY_MS
  /** The tools with results that also include what has waited too long for their owner. */
  const riding = <Tools extends AgentTools>(tools: Tools, of: string): Tools =>
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
  const shown = { getAsyncTaskManager, ...limits }
  const lookup = {
    resolveSubagent: (name: string) => (Object.hasOwn(subagents, name) ? subagents[name] : resolveSubagent?.(name)),
    // Without subagents, `resolveSubagent` may still know a name.
    ...((resolveSubagent === undefined || Object.keys(subagents).length > 0) && {
      listSubagents: () => Object.entries(subagents).map(([name, subagent]) => subagentEntry(name, subagent)),
    }),
  }
  manager.reads.use(subagentOffer).offer = {
    owner,
    list: () => new Map(Object.entries(subagents).map(([name, subagent]) => [name, flatRunner(subagent)])),
    launching: (_owner, launch) => launch(),
  }
  const { telemetry } = options
  /** The tools of an owner's agent. */
  const toolsOf = (of: string, setting: Omit<ToolSetting, 'owned' | 'launching'>): AgentTools => {
    const tools = createHostTools({ ...setting, launching, owned: { ...shown, owner: of } })
    return riding(telemetry === undefined ? tools : tracedTools(tools, telemetry), of)
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

  const dispose = (): Promise<void> => manager.dispose()
  return {
    launch: (name, goal, given) => launchTask({ manager, subagents, owner }, name, goal, given),
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
    tools: toolsOf(owner, {
      shown,
      subagents: lookup,
      hasSchedules: options.schedules !== undefined,
      ...defined({ taskManager, commands: policy, monitors: options.monitors }),
    }),
    toolsOfRun: (taskId) => {
      const of = ownerOfRun(taskId)
      return toolsOf(of, { shown: { ...shown, owner: of }, subagents: { ...lookup, parentId: taskId } })
    },
    commands: createTaskCommands({ getAsyncTaskManager, pausedOwner: owner }),
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
    [Symbol.asyncDispose]: dispose,
  }
}
