/** Background tasks for one agent host: manager, reminders, auto-trigger, tools and slash commands, wired together. */
import {
  AsyncTaskAutoTrigger,
  autoTriggerOptionTypes,
  type AutoTriggerOptions,
  type TriggerAgentTurn,
} from '../async-tasks/auto-trigger.js'
import { messageLength } from '../async-tasks/bounded-text.js'
import { aBusySource, type BusySource } from '../async-tasks/busy.js'
import {
  AsyncTaskManager,
  DEFAULT_OWNER,
  managerOptionTypes,
  type AsyncTaskManagerOptions,
} from '../async-tasks/manager.js'
import type { Recovery } from '../async-tasks/recovery.js'
import { AsyncTaskReminderService } from '../async-tasks/reminder-service.js'
import { parseSetting, settingDefinitions, type SettingName } from '../async-tasks/settings.js'
import { areOfCluster, type ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { SlashCommand } from '../commands/command.js'
import { ownerOfRun } from '../../machines/families.js'
import { createTaskCommands } from '../commands/task-commands.js'
import { aRunnable } from '../engine/definition.js'
import type { FindRunner } from '../engine/runner.js'
import { defined } from '../defined.js'
import { InvalidInputError } from '../errors.js'
import {
  aFunction,
  aName,
  anObject,
  checkOptions,
  optionsOf,
  pickOptions,
  recordOf,
  type OptionTypes,
  limitFrom,
} from '../protocol/option-checks.js'
import { checkCommandPolicy, commandPolicyTypes, type CommandPolicy } from '../tools/command-policy.js'
import { findCommandRunner } from '../tools/cluster-command-run.js'
import { aTaskManager } from '../tools/submit-commands.js'
import { definitionOf, type ResolveSubagent, type Subagent } from '../tools/subagents.js'
import { withOverdue } from '../tools/overdue-notifications.js'
import type { Tool } from '../tools/tool.js'
import { foregroundOptionTypes, type ForegroundAbort, type ForegroundOptions } from '../tools/task-tool-options.js'
import type { ToolSetting } from '../tools/tool-descriptor.js'
import type { createRunCommandTool } from '../tools/run-command.js'
import { createHostTools, type AgentTools, type OptionalTools } from '../tools/tool-list.js'
import { tracedTools } from '../tools/traced-tools.js'
import { DEFAULT_TURN_TIMEOUT_MS, Turns, type AfterTurn, type Turn, type TurnOutcome, type WithTurn } from './turns.js'

/** The default of `maxDelayMs`. */
const DEFAULT_MAX_DELAY_MS = 60_000

/** Settings by name, as numbers or as text; see `settingDefinitions`. */
export type AgentTasksSettings = Partial<Record<SettingName, number | string>>

/** Which programs the model may run, and how many at once. */
export interface CommandsOptions extends CommandPolicy {
  /** How many commands may run at once, -1 for no limit. They take none of the slots of `maxAsyncTasks`. Default 5. */
  readonly maxCommands?: number
}

/** Options of `createAgentTasks`, including those of the manager. */
export interface AgentTasksOptions<
  Commands extends TaskManager | ClusterTasks | undefined = TaskManager | ClusterTasks | undefined,
  Programs extends CommandsOptions | undefined = CommandsOptions | undefined,
> extends Omit<AsyncTaskManagerOptions, 'maxAsyncTasks' | 'maxCommands'> {
  /** How many tasks may run at once, -1 for no limit. Takes precedence over the setting `task-max-async`. Default 5. */
  readonly maxAsyncTasks?: number
  /** The subagents that the tool `task` can start, by name. */
  readonly subagents?: Readonly<Record<string, Subagent>>
  /** Finds subagents that `subagents` does not have. */
  readonly resolveSubagent?: ResolveSubagent
  /** The owner of the tasks that the tools start: their results are delivered to it. Default `main`. */
  readonly owner?: string
  /**
   * Runs command tasks, and adds the tool `submit_commands`: a `TaskManager` of `agent-tasks/server`, or the tasks of a cluster. The host ends it, after
   * this.
   */
  readonly taskManager?: Commands
  /** Which programs the model may run, and adds the tool `run_command`. Default: none. */
  readonly commands?: Programs
  /** Settings by name; the options above take precedence. */
  readonly settings?: AgentTasksSettings
  /**
   * What becomes of a task that a call of a tool runs in place when the call is aborted. `cancel` (default): it is cancelled. `keep`: it goes on in
   * the background, and its end is owed.
   */
  readonly onForegroundAbort?: ForegroundAbort
  /** The maximum length of the text about one task in a message or a tool's result, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /**
   * How long a turn may hold the results of its reminder, in ms, Infinity for ever; then they are owed again, and `onError` is called. Default
   * 1800000 (30 minutes).
   */
  readonly turnTimeoutMs?: number
  /**
   * How long a result or a question may be owed to an agent that is never idle, in ms, Infinity for ever; then the result of the next call of one
   * of the tools carries it. Default 60000.
   */
  readonly maxDelayMs?: number
  /** Whether the agent is busy. Requires `triggerAgentTurn`; both together start the auto-trigger. */
  readonly isAgentBusy?: BusySource
  /** Starts a turn of the agent with a message. Requires `isAgentBusy`. */
  readonly triggerAgentTurn?: TriggerAgentTurn
  /** The timing of the auto-trigger: coalescing, back-off and limits. */
  readonly autoTrigger?: Omit<AutoTriggerOptions, 'owner'>
}

const { owner: _owner, ...triggerTypes } = autoTriggerOptionTypes
const { maxCommands, ...others } = managerOptionTypes
const managerTypes: OptionTypes<Omit<AsyncTaskManagerOptions, 'maxCommands'>> = others

const optionTypes: OptionTypes<AgentTasksOptions> = {
  ...managerTypes,
  commands: optionsOf<CommandsOptions>({ ...commandPolicyTypes, maxCommands }),
  subagents: recordOf(aRunnable),
  resolveSubagent: aFunction,
  owner: aName,
  taskManager: aTaskManager,
  settings: anObject,
  ...foregroundOptionTypes,
  maxMessageChars: messageLength,
  isAgentBusy: aBusySource,
  triggerAgentTurn: aFunction,
  turnTimeoutMs: limitFrom(1),
  maxDelayMs: limitFrom(0),
  autoTrigger: optionsOf<NonNullable<AgentTasksOptions['autoTrigger']>>(triggerTypes),
}

/**
 * The tools for a model, with the one that needs a `taskManager`.
 * @useDeclaredType
 */
export type AgentToolsWithCommands = AgentTools & Pick<OptionalTools, 'submit_commands'>

/** With `commands`, the tools for a model have `run_command` too. */
export type WithRunCommand = {
  /** The tools for the model. */
  readonly tools: {
    /** Runs a program as a command. */
    readonly run_command: ReturnType<typeof createRunCommandTool>
  }
}

/** The result of `createAgentTasks`. */
export interface AgentTasks {
  /** The tools for the model, each `{ name, description, inputSchema, execute }`. */
  readonly tools: AgentTools
  /**
   * Returns the tools for the agent of a run: the tasks that it launches belong to that run, and are the only ones that it sees. Their results are
   * owed to `ownerOfRun(taskId)`: `withTurn(run, ownerOfRun(taskId))`.
   */
  readonly toolsOfRun: (taskId: string) => AgentTools
  /** The slash commands for people: `/tasks` and `/task`. */
  readonly commands: readonly SlashCommand[]
  /** Returns the manager; always the same. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Returns the reminder service; always the same. */
  readonly getAsyncTaskReminderService: () => AsyncTaskReminderService
  /** Delivers owed results to the agent when it is idle. A further call replaces both callbacks. Returns a function that ends this subscription, and no later one. */
  readonly setupAsyncTaskAutoTrigger: (isAgentBusy: BusySource, triggerAgentTurn: TriggerAgentTurn) => () => void
  /** Reports that the agent has become idle, for a host whose `isAgentBusy` is a function. */
  readonly notifyIdle: () => void
  /** Returns the current value of a setting. */
  readonly getSetting: (name: SettingName) => number
  /** Changes a setting. Throws `InvalidSettingError` for a value out of its range; the old value stays. */
  readonly setSetting: (name: SettingName, value: number | string) => void
  /** Returns what the next turn of an owner's agent (default: `owner`) should contain. Leases what is owed until `afterTurn`. */
  readonly beforeTurn: (owner?: string) => Turn
  /** Ends the lease of `beforeTurn`: the results are delivered, or owed again. */
  readonly afterTurn: AfterTurn
  /** `beforeTurn` and `afterTurn` around a function: its promise says whether the model received the reminder. */
  readonly withTurn: WithTurn
  /** Resolves when what an earlier process left in the store has been taken over; at once without a store. */
  readonly recovered: Promise<Recovery>
  /** Says that a message is in the host's transcript (`AsyncTaskManager.confirm`). */
  readonly confirm: (deliveryId: string) => boolean
  /** Owes once more what a message has delivered (`AsyncTaskManager.redeliver`). */
  readonly redeliver: (deliveryId: string) => boolean
  /** Cancels every task and stops all callbacks. Resolves when every run has ended or its grace has passed. */
  readonly dispose: () => Promise<void>
  /** `dispose`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** The result of `createAgentTasks` with a `taskManager`. */
export interface AgentTasksWithCommands extends AgentTasks {
  /** The tools for the model, `submit_commands` included. */
  readonly tools: AgentToolsWithCommands
}

/**
 * Wires background tasks for one agent host: a manager, and the reminders, auto-trigger, tools and commands that use it.
 * @throws InvalidSettingError, InvalidInputError for an invalid option
 */
export function createAgentTasks<
  Commands extends TaskManager | ClusterTasks | undefined = undefined,
  Programs extends CommandsOptions | undefined = undefined,
>(
  options: AgentTasksOptions<Commands, Programs> = {},
): (Commands extends TaskManager | ClusterTasks ? AgentTasksWithCommands : AgentTasks) &
  (Programs extends CommandsOptions ? WithRunCommand : unknown) {
  // With a task manager there is the tool `submit_commands`, and with commands `run_command`.
  return wire(options) as AgentTasksWithCommands & WithRunCommand
}

function wire(options: AgentTasksOptions): AgentTasks {
  checkOptions(options, optionTypes)
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
  /** The tools, whose results also carry what their owner has been owed for too long. */
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
    // Without subagents, a name may still be one that `resolveSubagent` knows.
    ...((resolveSubagent === undefined || Object.keys(subagents).length > 0) && {
      listSubagents: () =>
        Object.entries(subagents).map(([name, subagent]) =>
          typeof subagent === 'function' ? name : { name, description: subagent.description },
        ),
    }),
  }
  const { telemetry } = options
  /** The tools of the agent of an owner. */
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
    tools: toolsOf(owner, { shown, subagents: lookup, ...defined({ taskManager, commands: policy }) }),
    toolsOfRun: (taskId) => {
      const of = ownerOfRun(taskId)
      return toolsOf(of, { shown: { ...shown, owner: of }, subagents: { ...lookup, parentId: taskId } })
    },
    commands: createTaskCommands({ getAsyncTaskManager }),
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

function readSettings(settings: AgentTasksSettings): Record<SettingName, number> {
  for (const name of Object.keys(settings)) {
    parseSetting(name as SettingName, settings[name as SettingName] ?? 'nothing')
  }
  const names = Object.keys(settingDefinitions) as SettingName[]
  return Object.fromEntries(
    names.map((name) => [name, parseSetting(name, settings[name] ?? settingDefinitions[name].default)]),
  ) as Record<SettingName, number>
}
