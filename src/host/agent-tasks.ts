/** Everything for one agent host, wired: manager, reminders, auto-trigger, tools and slash commands (seed 001: Config). */
import { AsyncTaskAutoTrigger, type AutoTriggerOptions, type TriggerAgentTurn } from '../async-tasks/auto-trigger.js'
import type { BusySource } from '../async-tasks/busy.js'
import { AsyncTaskManager, DEFAULT_OWNER, type AsyncTaskManagerOptions } from '../async-tasks/manager.js'
import { AsyncTaskReminderService } from '../async-tasks/reminder-service.js'
import { parseSetting, settingDefinitions, type SettingName } from '../async-tasks/settings.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { createTaskCommands } from '../commands/task-commands.js'
import { InvalidInputError } from '../errors.js'
import { createCheckAsyncTasksTool } from '../tools/check-async-tasks.js'
import { createSubmitCommandsTool } from '../tools/submit-commands.js'
import type { ResolveSubagent, Subagent } from '../tools/subagents.js'
import { createTaskTool } from '../tools/task-tool.js'
import { createWaitForAsyncTasksTool } from '../tools/wait-for-async-tasks.js'
import { createTurns, type AfterTurn, type Turn } from './turns.js'

/** Settings by name, as numbers or as the text a person wrote; see `settingDefinitions`. */
export type AgentTasksSettings = Partial<Record<SettingName, number | string>>

/** Options of `createAgentTasks`; those of the manager are among them. */
export interface AgentTasksOptions extends Omit<AsyncTaskManagerOptions, 'maxAsyncTasks'> {
  /** How many tasks may run at once, -1 for no limit. Beats the setting `task-max-async`. Default 5. */
  readonly maxAsyncTasks?: number
  /** The subagents that the tool `task` can start, by name. */
  readonly subagents?: Readonly<Record<string, Subagent>>
  /** Looks up subagents that `subagents` does not have. */
  readonly resolveSubagent?: ResolveSubagent
  /** Whose tools these are: their tasks are told to this owner. Default `main`. */
  readonly owner?: string
  /** Runs command tasks (`agent-tasks/server`): with it there is the tool `submit_commands`. The host disposes it. */
  readonly taskManager?: TaskManager
  /** Settings by name; options beat them. */
  readonly settings?: AgentTasksSettings
  /** The most a message or a tool's result says about one task, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** Whether the agent is busy. With `triggerAgentTurn` it sets the auto-trigger up at once. */
  readonly isAgentBusy?: BusySource
  /** Starts a turn of the agent with a message. */
  readonly triggerAgentTurn?: TriggerAgentTurn
  /** How results are brought: gathering, back-off, limits. */
  readonly autoTrigger?: Omit<AutoTriggerOptions, 'owner'>
}

/**
 * What `createAgentTasks` makes.
 * @useDeclaredType
 */
export type AgentTasks = ReturnType<typeof wire>

/** What `createAgentTasks` makes when it is given a task manager: one tool more. */
export interface AgentTasksWithCommands extends AgentTasks {
  readonly tools: AgentTasks['tools'] & { readonly submit_commands: ReturnType<typeof createSubmitCommandsTool> }
}

/**
 * Wires background tasks for one agent host.
 * @returns manager, reminders, auto-trigger, tools and commands that work on the same registry
 * @throws InvalidSettingError, InvalidInputError for options that do not fit
 */
export function createAgentTasks(
  options: AgentTasksOptions & { readonly taskManager: TaskManager },
): AgentTasksWithCommands
export function createAgentTasks(options?: AgentTasksOptions): AgentTasks
export function createAgentTasks(options: AgentTasksOptions = {}): AgentTasks {
  return wire(options)
}

function wire(options: AgentTasksOptions) {
  const { subagents = {}, owner = DEFAULT_OWNER, isAgentBusy, triggerAgentTurn, settings = {} } = options
  if ((isAgentBusy === undefined) !== (triggerAgentTurn === undefined)) {
    const missing = isAgentBusy === undefined ? 'isAgentBusy' : 'triggerAgentTurn'
    throw new InvalidInputError(
      `options.${missing}`,
      undefined,
      'isAgentBusy and triggerAgentTurn together, or neither',
    )
  }
  const current = readSettings(settings)
  const manager = new AsyncTaskManager({
    ...options,
    maxAsyncTasks: options.maxAsyncTasks ?? current['task-max-async'],
  })
  const { maxMessageChars } = options
  const limits = maxMessageChars === undefined ? {} : { maxMessageChars }
  const reminders = new AsyncTaskReminderService(manager, limits)
  const turns = createTurns(manager, reminders, owner)
  const getAsyncTaskManager = () => manager
  const deps = { getAsyncTaskManager, owner, ...limits }
  const timeouts = {
    defaultTimeoutSeconds: () => current['task-default-timeout-seconds'],
    maxTimeoutSeconds: () => current['task-max-timeout-seconds'],
  }
  const { taskManager } = options
  const tools = {
    task: createTaskTool({
      ...deps,
      ...timeouts,
      resolveSubagent: (name) => (Object.hasOwn(subagents, name) ? subagents[name] : options.resolveSubagent?.(name)),
      listSubagents: () => Object.keys(subagents),
    }),
    check_async_tasks: createCheckAsyncTasksTool({ getAsyncTaskManager, ...limits }),
    wait_for_async_tasks: createWaitForAsyncTasksTool(deps),
    ...(taskManager !== undefined && {
      submit_commands: createSubmitCommandsTool({ ...deps, ...timeouts, taskManager }),
    }),
  }
  let trigger: AsyncTaskAutoTrigger | undefined
  let unsubscribe: (() => void) | undefined

  /**
   * Wakes the idle agent with what it is owed. Calling it again replaces the callbacks (`updateCallbacks`).
   * @returns what ends it; setting it up again starts it again
   */
  const setupAsyncTaskAutoTrigger = (busy: BusySource, turn: TriggerAgentTurn): (() => void) => {
    if (trigger === undefined) {
      trigger = new AsyncTaskAutoTrigger(manager, reminders, busy, turn, { ...options.autoTrigger, owner })
    } else trigger.updateCallbacks(busy, turn)
    unsubscribe ??= trigger.subscribe()
    return () => {
      unsubscribe?.()
      unsubscribe = undefined
    }
  }
  if (isAgentBusy !== undefined && triggerAgentTurn !== undefined) {
    setupAsyncTaskAutoTrigger(isAgentBusy, triggerAgentTurn)
  }

  return {
    /** The manager; the same at every call. */
    getAsyncTaskManager,
    /** The reminder service; the same at every call. */
    getAsyncTaskReminderService: () => reminders,
    setupAsyncTaskAutoTrigger,
    /** Says that the agent has become idle, for a host whose `isAgentBusy` is a function. */
    notifyIdle: () => trigger?.notifyIdle(),
    /** What the model calls: plain tools by name, each `{ name, description, inputSchema, execute }`. */
    tools,
    /** What a person types. */
    commands: createTaskCommands({ getAsyncTaskManager }),
    /** The present value of a setting. */
    getSetting: (name: SettingName): number => (name === 'task-max-async' ? manager.getMaxAsyncTasks() : current[name]),
    /**
     * Changes a setting, from a number or its text.
     * @throws InvalidSettingError; the old value stays
     */
    setSetting: (name: SettingName, value: number | string): void => {
      const parsed = parseSetting(name, value)
      if (name === 'task-max-async') manager.setMaxAsyncTasks(parsed)
      current[name] = parsed
    },
    /** What the next turn of an owner's agent must know: a status summary, and what is owed under a lease. */
    beforeTurn: (turnOwner?: string): Turn => turns.before(turnOwner),
    /** Ends the lease of `beforeTurn`: whether the turn accepted the reminder. */
    afterTurn: ((ownerOrOutcome, outcome) => turns.after(ownerOrOutcome, outcome)) as AfterTurn,
    /** Ends everything; resolves when every run has ended or its grace has passed. */
    dispose: (): Promise<void> => manager.dispose(),
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
