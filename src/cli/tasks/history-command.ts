/** `agent-tasks tasks history`: shows the ended tasks of a store, even while another process owns the store. */
import type { Command } from 'commander'
import { hasEnded, TERMINAL_STATUSES } from '../../../machines/task-status.js'
import { asPastTask } from '../../command-tasks/past-command-task.js'
import { FORGOTTEN, restoreTasks } from '../../command-tasks/stored-tasks.js'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { placeOf, placeText, withKept } from '../../store/history/past-tasks.js'
import { byEnd, type PastTask } from '../../store/history/task-history.js'
import { partsOf, readHistoryAt } from '../../store/locations/read-store-at.js'
import { STORE_URLS } from '../../store/locations/store-url.js'
import { toPastRow } from '../../store/sessions/kept-tasks.js'
import type { StoreContents } from '../../store/store.js'
import { readInteger } from '../numbers.js'
import { formatAge, formatTable, oneLine } from '../table.js'
import { createTerminal, type ProgramIO } from '../terminal.js'

interface HistoryOptions {
  readonly store?: string
  readonly kind?: string
  readonly owner?: string
  readonly name?: string
  readonly status?: string
  readonly text?: string
  readonly before?: string
  readonly limit: string
  readonly json?: boolean
}

/** The kinds of task as `--kind` names them, and as a store does. */
const KINDS = { async: 'task', command: 'command task' } as const satisfies Record<string, PastTask['kind']>

export function addHistoryCommand(tasks: Command, io: ProgramIO): void {
  tasks
    .command('history')
    .description('list tasks of a store that have ended, the latest first')
    .option('--store <store>', `the file of a store, a folder of sessions, or ${STORE_URLS} (default: TASKS_STORE)`)
    .option('--kind <kind>', 'only tasks of this kind: async, command')
    .option('--owner <owner>', 'only tasks of this owner, or of this instance')
    .option('--name <name>', 'only tasks of this subagent, or command tasks of this name')
    .option('--status <status>', `only tasks with this end: ${TERMINAL_STATUSES.join(', ')}`)
    .option('--text <words>', 'only tasks that contain these words, or words that begin with them')
    .option('--before <place>', 'list the next page: the position that the previous page has printed')
    .option('--limit <count>', 'the most tasks to list', '50')
    .option('--json', 'print JSON, a task a line, with its result')
    .addHelpText(
      'after',
      `
Examples:
  $ agent-tasks tasks history --store .agent/tasks.db --text "login page"
  $ agent-tasks tasks history --store .agent/tasks --status failed --json | jq -r .record.error`,
    )
    .action((options: HistoryOptions) => showHistory(options, io))
}

async function showHistory(options: HistoryOptions, io: ProgramIO): Promise<void> {
  const location = options.store ?? io.env['TASKS_STORE']
  if (location === undefined || location === '') {
    throw new AgentTasksError('INVALID_INPUT', `Name a store: --store FILE|DIR|${STORE_URLS}, or TASKS_STORE.`)
  }
  const { owner, name, status, text, before } = options
  const limit = readInteger('--limit', options.limit, 1, 10_000)
  const place = before === undefined ? undefined : placeOf(before, '--before')
  if (status !== undefined && !TERMINAL_STATUSES.some((known) => known === status)) {
    throw new InvalidInputError('--status', status, `one of ${TERMINAL_STATUSES.join(', ')}`)
  }
  const query = { owner, name, status, text, before: place, limit: limit + 1 }
  const found: PastTask[] = []
  const kept = await keptAt(location)
  for (const kind of kindsOf(options.kind)) {
    const wanted = { ...query, kind }
    found.push(...withKept(await readHistoryAt(location, '--store', wanted), kept, wanted))
  }
  const tasks = found.sort(byEnd).slice(0, limit)
  const terminal = createTerminal(io, 'stdout')
  if (options.json === true) tasks.map(toJson).forEach(terminal.printJson)
  else if (tasks.length === 0) terminal.say('There is no task that matches.')
  else {
    const rows = tasks.map(({ id, kind, owner: of, name: called, status: end, completedAt, record }) => [
      oneLine(id, 60),
      kind === 'task' ? oneLine(called, 30) : '(commands)',
      oneLine(of, 30),
      end,
      formatAge(completedAt),
      oneLine(typeof record['goalPrompt'] === 'string' ? record['goalPrompt'] : called, 60),
    ])
    formatTable(['TASK', 'SUBAGENT', 'OWNER', 'STATUS', 'ENDED', 'GOAL'], rows).forEach(terminal.print)
  }
  const last = tasks.at(-1)
  if (found.length > tasks.length && last !== undefined) {
    terminal.say(`There are more: --before ${JSON.stringify(placeText(last))}`)
  }
}

/** Makes a line of `--json`. The record is unchanged, as it was stored. */
function toJson({ id, kind, owner, name, record, ...task }: PastTask): object {
  if (kind === 'command task') return { task_id: id, kind: 'command', name, instanceId: owner, ...task, record }
  return { task_id: id, kind: 'async', subagent: name, goal: record['goalPrompt'], owner, ...task, record }
}

function kindsOf(kind: string | undefined): readonly PastTask['kind'][] {
  if (kind === undefined) return ['task', 'command task']
  if (Object.hasOwn(KINDS, kind)) return [KINDS[kind as keyof typeof KINDS]]
  throw new InvalidInputError('--kind', kind, 'one of async, command')
}

/**
 * Reads the ended tasks that the owner of the store still keeps in memory.
 * @throws StoreError
 */
async function keptAt(location: string): Promise<PastTask[]> {
  const parts = await partsOf(location)
  return parts.flatMap(({ read }) => {
    if ('error' in read) throw read.error
    return endedIn(read.contents, location)
  })
}

function endedIn({ tasks, commandTasks, commands }: StoreContents, location: string): PastTask[] {
  const ended = commandTasks.filter(({ status, completedAt }) => status !== FORGOTTEN && completedAt !== undefined)
  return [
    ...tasks.filter(({ status }) => hasEnded(status)).map(toPastRow),
    ...restoreTasks(ended, commands, location).map(({ task }) => asPastTask(task)),
  ]
}
