/** The options of `createAgentTasks` and their validation. */
import {
  autoTriggerOptionTypes,
  type AutoTriggerOptions,
  type TriggerAgentTurn,
} from '../async-tasks/delivery/auto-trigger.js'
import { messageLength } from '../async-tasks/output/bounded-text.js'
import { aBusySource, type BusySource } from '../async-tasks/delivery/busy.js'
import { managerOptionTypes, type AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import { parseSetting, settingDefinitions, type SettingName } from '../async-tasks/settings.js'
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { aRunnable } from '../engine/definition.js'
import {
  aFunction,
  aName,
  anObject,
  limitFrom,
  optionsOf,
  recordOf,
  type OptionTypes,
} from '../protocol/option-checks.js'
import type { MonitorLimits } from '../async-tasks/monitors/monitors.js'
import type { ScheduleOptions } from '../protocol/schedules.js'
import { commandPolicyTypes, type CommandPolicy } from '../tools/command-policy.js'
import type { ResolveSubagent } from '../tools/subagents.js'
import { aTaskManager } from '../tools/submit-commands.js'
import { foregroundOptionTypes, type ForegroundAbort } from '../tools/task-tool-options.js'
import type { Subagents } from './subagent-outputs.js'

/** Settings by name, as numbers or text. See `settingDefinitions`. */
export type AgentTasksSettings = Partial<Record<SettingName, number | string>>

/** The programs that the model may run, and how many at once. */
export interface CommandsOptions extends CommandPolicy {
  /** How many commands may run at once, -1 for no limit. They do not count toward `maxAsyncTasks`. Default 5. */
  readonly maxCommands?: number
}

/** Options of `createAgentTasks`, including those of the manager. */
export interface AgentTasksOptions<
  Commands extends TaskManager | ClusterTasks | undefined = TaskManager | ClusterTasks | undefined,
  Programs extends CommandsOptions | undefined = CommandsOptions | undefined,
  Known extends Subagents = Subagents,
  Scheduling extends ScheduleOptions | undefined = ScheduleOptions | undefined,
  Watching extends MonitorLimits | undefined = MonitorLimits | undefined,
> extends Omit<AsyncTaskManagerOptions, 'maxAsyncTasks' | 'maxCommands' | 'schedules' | 'monitors'> {
  /** How many tasks may run at once, -1 for no limit. Takes precedence over the setting `task-max-async`. Default 5. */
  readonly maxAsyncTasks?: number
  /** The subagents that `launch` and the tool `task` can start, by name. */
  readonly subagents?: Known
  /** Finds subagents that are not in `subagents`, for the tool `task`. */
  readonly resolveSubagent?: ResolveSubagent
  /** The owner of the tasks that the tools start. It receives their results. Default `main`. */
  readonly owner?: string
  /**
   * Runs command tasks, and adds the tool `submit_commands`: a `TaskManager` of `agent-tasks/server`, or the tasks of a cluster. You dispose it,
   * after this host.
   */
  readonly taskManager?: Commands
  /** The programs that the model may run. Adds the tool `run_command`. Default: none. */
  readonly commands?: Programs
  /** Limits of schedules. Adds the tool `schedule`; `{}` for the default limits. Default: no such tool. */
  readonly schedules?: Scheduling
  /** What monitors may read, and how many are allowed. Adds the tool `monitor`; `{}` allows tasks, with the default limits. Default: no such tool. */
  readonly monitors?: Watching
  /** Settings by name; the options above take precedence. */
  readonly settings?: AgentTasksSettings
  /**
   * What happens to a foreground task when its tool call is aborted. `cancel` (default) cancels it. With `keep` it continues in the background, and
   * its result is delivered.
   */
  readonly onForegroundAbort?: ForegroundAbort
  /**
   * How long a tool call waits for a foreground task, in seconds. Then the task continues in the background, and the result of the call says so. -1
   * (default) for no limit.
   */
  readonly backgroundAfterSeconds?: number
  /** The maximum length of the text about one task in a message or a tool result, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /**
   * How long a turn may hold the results of its reminder, in ms, or Infinity. After that they are delivered again, and `onError` is called. Default
   * 1800000 (30 minutes).
   */
  readonly turnTimeoutMs?: number
  /**
   * How long a result or a question may wait for the agent to become idle, in ms, or Infinity. After that the next tool result includes it. A note is
   * included at once. Default 60000.
   */
  readonly maxDelayMs?: number
  /** Whether the agent is busy. Requires `triggerAgentTurn`; together they start the auto-trigger. */
  readonly isAgentBusy?: BusySource
  /** Starts an agent turn with a message. Requires `isAgentBusy`. */
  readonly triggerAgentTurn?: TriggerAgentTurn
  /** The timing of the auto-trigger: coalescing, back-off and limits. */
  readonly autoTrigger?: Omit<AutoTriggerOptions, 'owner'>
}

const { owner: _owner, ...triggerTypes } = autoTriggerOptionTypes
const { maxCommands, ...others } = managerOptionTypes
export const managerTypes: OptionTypes<Omit<AsyncTaskManagerOptions, 'maxCommands'>> = others

export const agentTasksOptionTypes: OptionTypes<AgentTasksOptions> = {
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
 * Returns the value of each setting.
 * @throws InvalidSettingError for an unknown setting or a value out of range
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
