/** The slash commands `/pause` and `/resume`. */
import { givenManager } from '../../async-tasks/given-manager.js'
import { DEFAULT_OWNER } from '../../async-tasks/owner.js'
import { boundLines } from '../output/bounded-text.js'
import {
  defineCommand,
  LIST_CHARS,
  type CommandResult,
  type SlashCommand,
  type TaskCommandsOptions,
} from '../../host/commands/command.js'
import { pauseLine } from './pause-texts.js'

const USAGE = 'Usage: /pause [all]'

export const pauseCommands = (options: TaskCommandsOptions): readonly SlashCommand[] => [
  defineCommand({
    name: 'pause',
    description: 'Pause background tasks until /resume',
    run: (args) => pauseTasks(options, args),
    complete: (partial) => (options.owner === undefined && 'all'.startsWith(partial) ? ['all'] : []),
  }),
  defineCommand({
    name: 'resume',
    description: 'Resume paused background tasks',
    run: (args) => (args === '' ? resumeTasks(options) : { type: 'error', text: 'Usage: /resume' }),
  }),
]

function pauseTasks(options: TaskCommandsOptions, args: string): CommandResult {
  if (args !== '' && (args !== 'all' || options.owner !== undefined)) return { type: 'error', text: USAGE }
  const pause = givenManager(options).pause(args === 'all' ? undefined : ownerToPause(options), { by: '/pause' })
  return { type: 'info', text: `${pauseLine(pause)} Running tasks continue. No other task starts until /resume.` }
}

/** Ends the pause of one owner. Commands that are not restricted to an owner also end the pause of all owners. */
function resumeTasks(options: TaskCommandsOptions): CommandResult {
  const manager = givenManager(options)
  const owner = ownerToPause(options)
  const isResumed = [manager.resume(owner), options.owner === undefined && manager.resume()].includes(true)
  const left = manager.reads.listLines(options.owner)
  const text = boundLines([isResumed ? 'Background tasks start again.' : 'Nothing was paused.', ...left], LIST_CHARS)
  return { type: isResumed ? 'info' : 'error', text }
}

const ownerToPause = ({ owner, pausedOwner = owner ?? DEFAULT_OWNER }: TaskCommandsOptions): string => pausedOwner
