/** The tool `monitor`, which wakes the agent when a line matches: a line in the output of a task or a program, or in a file. */
import { z } from 'zod'
import { givenManager } from '../../async-tasks/given-manager.js'
import type { AsyncTaskManager } from '../../async-tasks/manager.js'
import { monitorLines, monitors, type MonitorSource, type TaskMonitor } from './monitors.js'
import { hasNotEnded } from '../task-ids/task-lookup.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import type { MonitorOptions } from '../../protocol/monitors.js'
import { strictObject } from '../../protocol/strict-object.js'
import { allowedCommand, type CommandPolicy } from '../../tools/command-policy.js'
import { commandInput, commandRunner, readLine, runCommandSchema } from '../../tools/run-command.js'
import { findTask, maxListChars, taskViews } from '../../tools/task-view.js'
import type { HostTool, ToolSetting } from '../../tools/tool-descriptor.js'
import { outputOf } from '../../tools/tool-output.js'
import { defineTool, errorResult, textResult, type Tool, type ToolResult } from '../../tools/tool.js'

/** The program that a monitor starts and reads. The option `commands` must allow it. */
export interface MonitoredCommand {
  /** The program, or the command line for a shell. */
  readonly command: string
  /** Its arguments. Default: none. */
  readonly args?: readonly string[] | undefined
  /** The folder to run in. Default: the first folder of `commands`. */
  readonly cwd?: string | undefined
  /** Environment variables to set. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

/**
 * Starts a monitor. If the source is a program, starts the program, too. The program is stopped when the monitor ends.
 * @throws INVALID_INPUT for an invalid source or option
 * @throws TASK_LIMIT when there is no slot for the program
 * @throws DISPOSED when the manager was disposed
 * @throws AgentTasksError `MONITOR_LIMIT` when there are too many monitors
 */
export function startMonitor(
  manager: AsyncTaskManager,
  policy: CommandPolicy | undefined,
  source: MonitorSource | MonitoredCommand,
  options: MonitorOptions,
): TaskMonitor {
  if (!('command' in source)) return manager.monitor(source, options)
  if (policy === undefined) {
    throw new InvalidInputError('input.command', source.command, 'none (see the option commands)')
  }
  const command = policy.shell === true ? readLine(source.command).line : source.command
  const allowed = allowedCommand(policy, { ...source, command })
  if ('expected' in allowed) throw new InvalidInputError(allowed.field, allowed.received, allowed.expected)
  const input = commandInput(policy, allowed)
  const id = manager.createTaskId(input.subagentName)
  const start = manager.reads.use(monitors).plan({ taskId: id }, options, true)
  return manager.reads.batch(() => {
    manager.launch({ ...input, id, ...omitUndefined({ owner: options.owner }) }, commandRunner(allowed, manager))
    return start()
  })
}

const schema = lazily(() => {
  const { command, args, cwd, env } = runCommandSchema().shape
  return strictObject({
    action: z.enum(['start', 'list', 'cancel']).default('start'),
    task_id: z.string().optional().describe('The task whose output to watch.'),
    command: command.optional().describe('Or a program to start and watch. It is stopped when the monitor ends.'),
    args,
    cwd,
    env,
    file: z.string().optional().describe('Or a file to watch.'),
    match: z
      .union([z.string(), z.array(z.string())])
      .optional()
      .describe('Report lines that contain this text, or one of these texts.'),
    regex: z.string().optional().describe('Instead of match: a regular expression (RE2).'),
    flags: z.string().optional().describe('Of regex: i, m, s, u.'),
    max_events: z.number().optional().describe('End the monitor after this many messages.'),
    idle_seconds: z.number().optional().describe('End the monitor after this many seconds without output.'),
    seconds: z.number().optional().describe('End the monitor after this time. Default 300.'),
    description: z.string().optional().describe('What it is for.'),
    monitor_id: z.string().optional().describe('The monitor to cancel.'),
  })
})

type MonitorTool = Tool<ReturnType<typeof schema>>

const NAME = 'monitor'

const LIMITS: readonly string[] = ['TASK_LIMIT', 'MONITOR_LIMIT']

function createMonitorTool({ owned, shown, commands, monitors: limits }: ToolSetting): MonitorTool | undefined {
  if (limits === undefined) return undefined
  const viewOf = taskViews(shown)
  const { owner } = owned
  const refuse = (expected: string): ToolResult => errorResult('parameter_validation', `params: expected ${expected}.`)
  const sources = [
    'task_id',
    ...(commands === undefined ? [] : ['command']),
    ...(limits.files === undefined ? [] : ['file']),
  ]
  const unlisted = {
    ...(commands === undefined
      ? { command: true, args: true, cwd: true, env: true }
      : omitUndefined({ args: commands.shell })),
    ...(limits.files === undefined && { file: true }),
  } as const
  return defineTool({
    name: NAME,
    description:
      'Get a message when a line matches in the output of a task or a program, or in a file, and when the monitor ends. The call returns at once. Also lists and cancels monitors.',
    inputSchema: schema().omit(unlisted as object),
    describe: ({ action, task_id, command, file }) => `Monitor: ${action} ${task_id ?? command ?? file ?? ''}`.trim(),
    run: async (
      { action, task_id, file, command, args, cwd, env, match, regex, flags, monitor_id, ...rest },
      context,
    ) => {
      const manager = givenManager(owned)
      const view = viewOf(context)
      const present = manager.monitors(owner)
      if (action === 'list') return textResult(monitorLines(present, manager.reads.clock.now(), maxListChars(view)))
      if (action === 'cancel') {
        const found = present.find(({ id }) => id === monitor_id)
        if (found?.cancel() === true) return textResult(`Monitor ${found.id} was cancelled.`, { id: found.id })
        return errorResult('parameter_validation', `There is no monitor ${JSON.stringify(monitor_id ?? '')}.`)
      }
      const found = task_id === undefined ? undefined : findTask(view, task_id, hasNotEnded)
      if (found !== undefined && 'refusal' in found) return found.refusal
      if ([task_id, command, file].filter((source) => source !== undefined).length !== 1) {
        return refuse(sources.length === 1 ? 'task_id' : `one of ${sources.join(', ')}`)
      }
      if (regex === undefined && match === undefined) return refuse('match or regex')
      if (regex !== undefined && match !== undefined) return refuse('either match or regex, and not both')
      if (regex === undefined && flags !== undefined) return refuse('flags beside a regex, and not beside match')
      const { max_events, idle_seconds, seconds, description } = rest
      const source = omitUndefined({ taskId: found?.task.id, file, command, args, cwd, env })
      const looked = regex === undefined ? match : { regex, ...omitUndefined({ flags }) }
      const options = { match: looked, maxEvents: max_events, idleSeconds: idle_seconds, seconds, description, owner }
      try {
        const { id } = startMonitor(
          manager,
          commands,
          source as MonitorSource,
          omitUndefined(options) as MonitorOptions,
        )
        await manager.stored()
        return textResult(`Monitor ${id} started. You get a message when a line matches, and when it ends.`, { id })
      } catch (error) {
        if (error instanceof InvalidInputError) return errorResult('parameter_validation', error.message)
        if (!(error instanceof AgentTasksError) || !LIMITS.includes(error.code)) throw error
        return errorResult('limit_reached', error.message)
      }
    },
  })
}

export const monitorTool: HostTool<MonitorTool | undefined> = {
  name: NAME,
  title: 'Watch for lines',
  summary: 'Delivers the lines that match in the output of a task, of a program or of a file, while it is written.',
  purpose: 'delivers matching lines of a task, a program or a file as they are written.',
  hints: { readOnlyHint: false, destructiveHint: false },
  answersLater: ({ action = 'start' }) => action === 'start',
  output: lazily(() => outputOf({ monitor_id: ['id', z.string().optional()] })),
  create: createMonitorTool,
  served: {
    description:
      'Get a message when a line matches in the output of a task or program, or in a file, and when the monitor ends.',
    texts: {
      flags: '',
      max_events: '',
      description: '',
      command: 'Or a program to start, watch and stop.',
      match: 'Report lines with this text, or one of these.',
      idle_seconds: 'End after this many seconds without output.',
      seconds: 'End after this time. Default 300.',
    },
  },
}
