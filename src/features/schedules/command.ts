/** The slash commands `/schedules` and `/schedule`, which list and cancel schedules. */
import { givenManager } from '../../async-tasks/given-manager.js'
import { findSchedule, noSchedule, scheduleLines } from './schedule-lines.js'
import type { ScheduleInfo } from '../../protocol/schedules.js'
import {
  defineCommand,
  groupCommands,
  type CommandResult,
  type SlashCommand,
  type TaskCommandsOptions,
} from '../../host/commands/command.js'

const USAGE = 'Usage: /schedule cancel <schedule_id>'

export function scheduleCommands(options: TaskCommandsOptions): SlashCommand[] {
  const listed = (): ScheduleInfo[] => givenManager(options).schedules(options.owner)
  const cancel = (named: string): CommandResult => {
    const id = findSchedule(listed(), named)
    if (id === undefined) return { type: 'error', text: named === '' ? USAGE : noSchedule(named) }
    givenManager(options).cancelSchedule(id)
    return { type: 'info', text: `Cancelled ${id}.` }
  }
  const description = 'Cancel a schedule'
  const complete = (partial: string): string[] => listed().flatMap(({ id }) => (id.startsWith(partial) ? [id] : []))
  return [
    defineCommand({
      name: 'schedules',
      description: 'List the schedules',
      run: () => ({ type: 'info', text: scheduleLines(listed()) }),
    }),
    groupCommands({
      name: 'schedule',
      description,
      usage: USAGE,
      subcommands: [defineCommand({ name: 'cancel', description, run: cancel, complete })],
    }),
  ]
}
