/** `agent-tasks tasks deadline` and `tasks conclude`: change a running task of a host, through its page. */
import type { Command } from 'commander'
import { InvalidInputError } from '../../errors.js'
import { createTerminal, type ProgramIO } from '../terminal.js'
import { isOver } from './listed-task.js'
import { addSourceOptions, SOURCES_HELP, withSource, type SourceOptions } from './source-options.js'

interface ConcludeOptions extends SourceOptions {
  readonly reason?: string
}

export function addLimitCommands(tasks: Command, io: ProgramIO): void {
  const add = (name: string, description: string) =>
    addSourceOptions(tasks.command(name).description(description).argument('<id>', 'the id, or a unique prefix of it'))
  add('deadline', 'change the deadline of a running async task (with --page)')
    .argument('<seconds>', 'the time from now to the deadline, or none')
    .addHelpText('after', `${SOURCES_HELP}${EXITS}Examples:\n  $ agent-tasks tasks deadline researcher-1 600\n`)
    .action((id: string, seconds: string, options: SourceOptions) => setDeadline(id, seconds, options, io))
  add('conclude', 'ask a running async task to return what it has (with --page)')
    .option('--reason <text>', 'why: the run and the error have it')
    .addHelpText(
      'after',
      `${SOURCES_HELP}${EXITS}Examples:\n  $ agent-tasks tasks conclude researcher-1 --reason 'the demo begins'\n`,
    )
    .action((id: string, options: ConcludeOptions) => conclude(id, options, io))
}

const EXITS = `
Exit code: 0 changed, 2 the source cannot change tasks, 3 no page, 4 no such task or several, or it cannot be changed.

`

async function setDeadline(id: string, given: string, options: SourceOptions, io: ProgramIO): Promise<void> {
  const seconds = given === 'none' ? null : /^\d+(\.\d+)?$/.test(given) ? Number(given) : undefined
  if (seconds === undefined) throw new InvalidInputError('seconds', given, 'a number of seconds >= 0, or none')
  await act(id, 'deadline', { seconds }, options, io)
}

const conclude = (id: string, { reason, ...options }: ConcludeOptions, io: ProgramIO): Promise<void> =>
  act(id, 'conclude', reason === undefined ? {} : { reason }, options, io)

async function act(
  idOrPrefix: string,
  action: 'conclude' | 'deadline',
  body: object,
  options: SourceOptions,
  io: ProgramIO,
): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const id = await withSource(options, io, async (source) => {
    const { act: change, name } = source
    if (change === undefined) {
      throw new InvalidInputError(
        '--page',
        undefined,
        `the page of a running host, because ${name} cannot change tasks`,
      )
    }
    const task = await source.find(idOrPrefix, (found) => !isOver(found))
    await change(task, action, body)
    return task.task_id
  })
  if (options.json === true) terminal.printJson({ task_id: id, changed: true })
  else terminal.print(action === 'conclude' ? `${id} was asked to conclude.` : `${id} has another deadline.`)
}
