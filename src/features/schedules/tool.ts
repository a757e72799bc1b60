/** The tool `schedule`, which wakes the agent or launches a task at a later time. */
import { z } from 'zod'
import { givenManager } from '../../async-tasks/given-manager.js'
import { findSchedule, noSchedule, scheduleLines } from './schedule-lines.js'
import type { Schedule } from './schedules.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import { MISSED, OVERLAP, scheduledText, type ScheduleInput } from '../../protocol/schedules.js'
import { strictObject } from '../../protocol/strict-object.js'
import { preview } from '../../data/preview.js'
import { timeoutPolicy } from '../../tools/task-timeout.js'
import type { HostTool, ToolSetting } from '../../tools/tool-descriptor.js'
import { outputOf } from '../../tools/tool-output.js'
import { defineTool, errorResult, textResult, type Tool, type ToolResult } from '../../tools/tool.js'

const NAME = 'schedule'

const scheduleSchema = lazily(() =>
  strictObject({
    action: z.enum(['create', 'list', 'cancel']).optional().describe('Default create.'),
    schedule_id: z.string().min(1).optional().describe('To cancel: an ID or unique prefix.'),
    in_seconds: z.number().min(0).optional(),
    at: z.string().optional().describe('ISO time. One without an offset needs time_zone.'),
    every_seconds: z.number().min(0).optional(),
    cron: z.string().optional().describe('Five fields: minute, hour, day, month, weekday (Sunday is 0).'),
    time_zone: z.string().optional().describe('Of cron and at, such as Europe/Berlin.'),
    message: scheduledText().optional().describe('The message that you get.'),
    subagent_name: z.string().optional().describe('Launch this subagent instead of a message.'),
    goal_prompt: scheduledText().optional().describe('Its goal.'),
    missed: z
      .enum(MISSED)
      .optional()
      .describe('What was missed while nothing ran: once for all (default), or not at all.'),
    overlap: z
      .enum(OVERLAP)
      .optional()
      .describe('While the task of the last time runs: skip (default), or launch another.'),
  }),
)

type Fields = z.output<ReturnType<typeof scheduleSchema>>

const PARAMETERS: Readonly<Record<string, string>> = {
  in: 'in_seconds',
  every: 'every_seconds',
  timeZone: 'time_zone',
  'launch.subagent': 'subagent_name',
  'launch.goal': 'goal_prompt',
}

function createScheduleTool({ owned, launching, subagents }: ToolSetting): Tool<ReturnType<typeof scheduleSchema>> {
  const { owner } = owned
  const timeoutOf = timeoutPolicy(launching)
  const toMs = (seconds = -1): number | undefined => (seconds === -1 ? undefined : seconds * 1000)
  const create = ({ subagent_name, goal_prompt, ...fields }: Omit<Fields, 'action' | 'schedule_id'>): Schedule => {
    const { in_seconds, every_seconds, time_zone: timeZone, ...same } = fields
    const isTask = (subagent_name ?? goal_prompt) !== undefined
    const task = {
      subagent: subagent_name ?? '',
      goal: goal_prompt ?? '',
      ...omitUndefined({
        cwd: subagents.cwd,
        timeoutMs: toMs(timeoutOf(undefined).seconds),
      }),
    }
    const times = { in: toMs(in_seconds), every: toMs(every_seconds), timeZone }
    const input: object = { owner, ...omitUndefined({ ...same, ...times }), ...(isTask && { launch: task }) }
    // `schedule` refuses an input with too many or too few fields.
    return givenManager(owned).schedule(input as ScheduleInput)
  }
  const run = async ({ action, schedule_id, ...fields }: Fields): Promise<ToolResult> => {
    const manager = givenManager(owned)
    const listed = manager.schedules(owner)
    if (action === 'list') return textResult(scheduleLines(listed))
    if (action === 'cancel') {
      const id = findSchedule(listed, schedule_id)
      if (id === undefined) return errorResult('parameter_validation', noSchedule(schedule_id))
      manager.cancelSchedule(id)
      await manager.stored()
      return textResult(`Cancelled ${id}.`, { id, cancelled: true })
    }
    const schedule = create(fields)
    const { id, next } = schedule
    await manager.stored().catch((error: unknown) => {
      schedule.cancel()
      throw error
    })
    const made = manager.schedules(owner).filter((each) => each.id === id)
    return textResult(`Scheduled ${scheduleLines(made)}`, { id, next })
  }
  return defineTool({
    name: NAME,
    description:
      'Get a message, or launch a subagent, at a later time: once (in_seconds, at) or repeatedly (every_seconds, cron). Also lists and cancels schedules.',
    inputSchema: scheduleSchema(),
    run: async (fields) => {
      try {
        return await run(fields)
      } catch (error) {
        if (!(error instanceof InvalidInputError)) throw error
        const field = error.field.slice('input.'.length)
        if (field.startsWith('launch.context')) {
          const text = `params.subagent_name: ${preview(fields.subagent_name)} needs a context, which a scheduled task does not have.`
          return errorResult('parameter_validation', text)
        }
        const text = `params.${PARAMETERS[field] ?? field}${inSeconds(field, error.message.slice(error.field.length))}`
        return errorResult('parameter_validation', field === '' ? WHAT_AND_WHEN : text)
      }
    },
  })
}

/** Replaces ms by seconds in the text of an error, because these parameters are in seconds. */
const inSeconds = (field: string, text: string): string =>
  field === 'in' || field === 'every'
    ? text.replaceAll(/(\d+(?:\.\d+)?)(?: ms)?/g, (_, ms: string) => `${Number(ms) / 1000} s`)
    : text

const WHAT_AND_WHEN =
  'params: expected one of in_seconds, at, every_seconds and cron, and either a message or both subagent_name and goal_prompt.'

export const scheduleTool: HostTool<ReturnType<typeof createScheduleTool> | undefined> = {
  name: NAME,
  title: 'Schedule a message or a task',
  summary:
    'Wakes the agent with a message, or launches a subagent, at a later time or again and again; lists and cancels what is scheduled.',
  purpose: 'reminds you, or launches a subagent, at a later time.',
  hints: { readOnlyHint: false, destructiveHint: true },
  answersLater: ({ action = 'create' }) => action === 'create',
  output: lazily(() =>
    outputOf({
      schedule_id: ['id', z.string().optional()],
      next: ['next', z.number().optional()],
      cancelled: ['cancelled', z.boolean().optional()],
    }),
  ),
  listsTasks: true,
  served: {
    description:
      'Get a message, or launch a subagent, later: once (in_seconds, at) or repeatedly (every_seconds, cron).',
    texts: {
      goal_prompt: '',
      cron: 'Minute, hour, day, month, weekday (Sunday is 0).',
      missed: 'If missed: once (default) or not.',
      overlap: 'While its last task runs: skip (default) or launch.',
    },
  },
  create: (setting) => (setting.hasSchedules === true ? createScheduleTool(setting) : undefined),
}
