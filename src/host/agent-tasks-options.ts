/** The options of `createAgentTasks` and their validation. */
import {
  autoTriggerOptionTypes,
  type AutoTriggerOptions,
  type TriggerAgentTurn,
} from '../features/delivery/auto-trigger.js'
import { messageLength } from '../features/output/bounded-text.js'
import { aBusySource, type BusySource } from '../features/delivery/busy.js'
import { managerOptionTypes, type AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import { parseSetting, settingDefinitions, type SettingName } from '../async-tasks/settings.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { aRunnable } from '../engine/definition.js'
import {
  aFunction,
  aName,
  anObject,
  custom,
  limitFrom,
  optionsOf,
  recordOf,
  withDefault,
  type OptionTypes,
} from '../protocol/option-checks.js'
import type { MonitorLimits } from '../protocol/monitors.js'
import type { ScheduleOptions } from '../protocol/schedules.js'
import { commandPolicyTypes, type CommandPolicy } from '../tools/command-policy.js'
import type { ResolveSubagent } from '../tools/subagents.js'
import { aTaskManager } from '../tools/submit-commands.js'
import { foregroundOptionTypes, type ForegroundAbort } from '../tools/task-tool-options.js'
import type { RespondInConversation } from './conversations/conversation.js'
import type { OpenConversation } from './conversations/conversations.js'
import type { Subagents } from './subagent-outputs.js'

/** Settings by name. Each value is a number, or a number as text. See `settingDefinitions`. */
export type AgentTasksSettings = Partial<Record<SettingName, number | string>>

/** The programs that the model may run, and how many at once. */
export interface CommandsOptions extends CommandPolicy {
  /** The maximum number of commands that run at the same time; -1 for no limit. They do not count toward `maxAsyncTasks`. Default 5. */
  readonly maxCommands?: number
}

/** The options of `createAgentTasks`. They include those of `AsyncTaskManager`. */
export interface AgentTasksOptions<
  Commands extends TaskManager | ClusterTasks | undefined = TaskManager | ClusterTasks | undefined,
  Programs extends CommandsOptions | undefined = CommandsOptions | undefined,
  Known extends Subagents = Subagents,
  Scheduling extends ScheduleOptions | undefined = ScheduleOptions | undefined,
  Watching extends MonitorLimits | undefined = MonitorLimits | undefined,
  Answer = unknown,
> extends Omit<AsyncTaskManagerOptions, 'maxAsyncTasks' | 'maxCommands' | 'schedules' | 'monitors'> {
  /** The maximum number of tasks that run at the same time; -1 for no limit. If set, the setting `task-max-async` is ignored. Default 5. */
  readonly maxAsyncTasks?: number
  /** The subagents that `launch` and the tool `task` can start, by name. */
  readonly subagents?: Known
  /** Finds subagents whose names are not in `subagents`. Only the tool `task` uses this function. */
  readonly resolveSubagent?: ResolveSubagent
  /** The agent that owns the tasks started by the tools, and receives their results. Default `main`. */
  readonly owner?: string
  /**
   * Runs command tasks, and adds the tool `submit_commands`. Pass a `TaskManager` of `agent-tasks/server`, or the tasks of a cluster. Dispose this
   * host first, and then the `taskManager`; the host does not dispose it.
   */
  readonly taskManager?: Commands
  /** The programs that the model may run. If set, the tool `run_command` is added. Default: no programs. */
  readonly commands?: Programs
  /** The limits of schedules; `{}` for the default limits. If set, the tool `schedule` is added. Default: no such tool. */
  readonly schedules?: Scheduling
  /**
   * What monitors may watch, and how many there may be. With `{}` they may watch tasks, within the default limits. If set, the tool `monitor` is
   * added. Default: no such tool.
   */
  readonly monitors?: Watching
  /** Settings by name. An option with the same meaning overrides its setting. */
  readonly settings?: AgentTasksSettings
  /**
   * What happens to a foreground task when its tool call is aborted. With `cancel`, the task is cancelled. With `keep`, it continues in the
   * background, and its result is delivered. Default `cancel`.
   */
  readonly onForegroundAbort?: ForegroundAbort
  /**
   * How long a tool call waits for a foreground task, in seconds; -1 for no limit. After that the task continues in the background, and the call
   * returns a text that says so. Default -1.
   */
  readonly backgroundAfterSeconds?: number
  /** The maximum length of the text about one task in a message or a tool result, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /**
   * How long a turn may take to accept the results in its reminder, in ms, or Infinity. After that the results are delivered again, and `onError` is
   * called. Default 1800000 (30 minutes).
   */
  readonly turnTimeoutMs?: number
  /**
   * How long a result or a question waits for the agent to become idle, in ms, or Infinity. After that it is included in the next tool result. A
   * message of a schedule or monitor is included without this wait. Default 60000.
   */
  readonly maxDelayMs?: number
  /** Whether the agent is busy. Requires `triggerAgentTurn`. With both, each result starts a turn when the agent is idle (the auto-trigger). */
  readonly isAgentBusy?: BusySource
  /** Starts a turn of the agent with a message. Requires `isAgentBusy`. */
  readonly triggerAgentTurn?: TriggerAgentTurn
  /**
   * Runs the turns of all conversations of this host (`conversation`). Each result starts a turn of the conversation that owns its task, when that is
   * idle. Not together with `isAgentBusy` and `triggerAgentTurn`, which serve one agent.
   */
  readonly respond?: RespondInConversation<Answer>
  /** Decides about a conversation that nobody has opened and to which something is owed. Requires `respond`. Default: it is opened. */
  readonly openConversation?: OpenConversation<Answer>
  /**
   * How many turns of each conversation the store keeps; 0 for none. `respond` returns the messages of a turn, which are stored in one write with what the
   * turn has delivered, so that each result and each `send` with an id has its effect exactly once. The id of a message is known as long as its turn is
   * kept. With 0, `respond` may return anything. Default: 100 with a store, or 0 without one or with `wasDelivered`.
   */
  readonly keepTurns?: number
  /** How long a conversation stays open without a turn and without owed results, in ms. Default 600000 (10 minutes). */
  readonly conversationIdleMs?: number
  /** The timing of the auto-trigger: how long it collects results, its back-off and its limits. */
  readonly autoTrigger?: Omit<AutoTriggerOptions, 'owner'>
}

/** Not a number for `checkOption`, so that each error about it is INVALID_INPUT and names `options.keepTurns`. */
const countOrInfinity = custom(
  'an integer >= 0, or Infinity',
  (value) => value === Infinity || (Number.isSafeInteger(value) && Number(value) >= 0),
)

const { owner: _owner, ...triggerTypes } = autoTriggerOptionTypes
const { maxCommands, ...others } = managerOptionTypes
export const managerTypes = others satisfies OptionTypes<Omit<AsyncTaskManagerOptions, 'maxCommands'>>

export const agentTasksOptionTypes = {
  ...managerTypes,
  commands: optionsOf<CommandsOptions>({ ...commandPolicyTypes, maxCommands }),
  subagents: withDefault(recordOf(aRunnable), {}),
  resolveSubagent: aFunction,
  owner: withDefault(aName, DEFAULT_OWNER),
  taskManager: aTaskManager,
  settings: withDefault(anObject, {}),
  ...foregroundOptionTypes,
  maxMessageChars: messageLength,
  isAgentBusy: aBusySource,
  triggerAgentTurn: aFunction,
  respond: aFunction,
  openConversation: aFunction,
  keepTurns: countOrInfinity,
  conversationIdleMs: withDefault(limitFrom(0), 10 * 60_000),
  turnTimeoutMs: withDefault(limitFrom(1), 30 * 60_000),
  maxDelayMs: withDefault(limitFrom(0), 60_000),
  autoTrigger: optionsOf<NonNullable<AgentTasksOptions['autoTrigger']>>(triggerTypes),
} satisfies OptionTypes<AgentTasksOptions>

/**
 * Returns the value of each setting, or its default.
 * @throws INVALID_SETTING for an unknown setting or a value out of range
 */
export function readSettings(settings: AgentTasksSettings): Record<SettingName, number> {
  for (const name of Object.keys(settings)) {
    parseSetting(name as SettingName, settings[name as SettingName] ?? 'nothing')
  }
  const names = Object.keys(settingDefinitions) as SettingName[]
  return Object.fromEntries(
    names.map((name) => [name, parseSetting(name, settings[name] ?? settingDefinitions[name].default)]),
  ) as Record<SettingName, number>
}
