/** The slash commands `/deadline` and `/conclude`. */
import { givenManager } from '../../async-tasks/given-manager.js'
import { toOneLine } from '../../data/control-characters.js'
import {
  defineCommand,
  splitWord,
  type CommandResult,
  type SlashCommand,
  type TaskCommandsOptions,
} from '../../host/commands/command.js'
import { findNamed, runningIds } from '../../host/commands/named-task.js'
import { hasNotEnded } from '../task-ids/task-lookup.js'
import type { ChangeResult } from './changed-limits.js'

const DEADLINE_USAGE = 'Usage: /deadline <task_id> <seconds|none>'
const CONCLUDE_USAGE = 'Usage: /conclude <task_id> [reason]'

export const limitCommands = (options: TaskCommandsOptions): readonly SlashCommand[] => [
  defineCommand({
    name: 'deadline',
    description: 'Change the deadline of a background task',
    run: (args) => setDeadline(options, args),
    complete: (partial) => runningIds(options, partial),
  }),
  defineCommand({
    name: 'conclude',
    description: 'Ask a background task to return what it has',
    run: (args) => concludeTask(options, args),
    complete: (partial) => runningIds(options, partial),
  }),
]

function setDeadline(options: TaskCommandsOptions, args: string): CommandResult {
  const [idOrPrefix, limit] = splitWord(args)
  const seconds = limit === 'none' ? null : /^\d+(\.\d+)?$/.test(limit) ? Number(limit) : undefined
  if (seconds === undefined) return { type: 'error', text: DEADLINE_USAGE }
  const found = findNamed(options, idOrPrefix, hasNotEnded)
  if ('refusal' in found) return found.refusal
  const { id } = found.task
  const result = givenManager(options).changeDeadline(id, seconds === null ? null : seconds * 1000)
  const limitText = seconds === null ? 'has no deadline' : `must end within ${seconds} s`
  return answer(result, `Task ${toOneLine(id)} ${limitText}.`)
}

function concludeTask(options: TaskCommandsOptions, args: string): CommandResult {
  const [idOrPrefix, reason] = splitWord(args)
  if (idOrPrefix === '') return { type: 'error', text: CONCLUDE_USAGE }
  const found = findNamed(options, idOrPrefix, hasNotEnded)
  if ('refusal' in found) return found.refusal
  const { id } = found.task
  const result = givenManager(options).concludeTask(id, reason === '' ? {} : { reason: reason.slice(0, 1000) })
  return answer(result, `Asked task ${toOneLine(id)} to conclude.`)
}

const answer = (result: ChangeResult, text: string): CommandResult =>
  result.changed ? { type: 'info', text } : { type: 'error', text: toOneLine(result.reason) }
