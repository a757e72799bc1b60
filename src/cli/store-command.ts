/** `agent-tasks store show|export|check PATH`: looks into a store, or a folder of sessions, also while its owner runs. Nothing is changed. */
import { hasEnded } from '../../machines/task-status.js'
import { basename } from 'node:path'
import type { Command } from 'commander'

import { FORGOTTEN } from '../command-tasks/stored-tasks.js'
import { readStore, STORE_TABLES, type StoreContents, type StoredCommandTask } from '../store/index.js'
import { isFolder, readSessions, type StoredSession } from './stored-sessions.js'
import { formatAge, formatTable, oneLine } from './table.js'
import { createTerminal, type ProgramIO } from './terminal.js'

/** How much of a goal a line shows, in characters. */
const GOAL_CHARS = 60

export function addStoreCommand(program: Command, io: ProgramIO): void {
  const store = program.command('store').description('commands for the file of a store, or a folder of sessions')
  const path = [
    '<path>',
    'the file of the store, as in .agent/tasks.db, or the folder of `agent-tasks mcp --store`',
  ] as const
  store
    .command('show')
    .description('list what is stored, and what is owed')
    .argument(...path)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ agent-tasks store show .agent/tasks.db\n  $ agent-tasks store show .agent/tasks',
    )
    .action((at: string, { json }: { readonly json?: boolean }) =>
      (isFolder(at) ? showSessions : show)(at, json === true, io),
    )
  store
    .command('export')
    .description('print every row as a line of JSON')
    .argument(...path)
    .addHelpText(
      'after',
      '\nExamples:\n  $ agent-tasks store export .agent/tasks.db | jq -r \'select(.table == "tasks") | .row.id\'',
    )
    .action((at: string) => exportRows(at, io))
  store
    .command('check')
    .description('look for damage: every page and every row')
    .argument(...path)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe exit code is 2 when a file is no store, or is damaged.\n\nExamples:\n  $ agent-tasks store check .agent/tasks.db',
    )
    .action((at: string, { json }: { readonly json?: boolean }) => check(at, json === true, io))
}

function show(path: string, isJson: boolean, io: ProgramIO): void {
  const { tasks, deliveries, commands, instances, ...rest } = readStore(path)
  const commandTasks = rest.commandTasks.filter(isTask)
  const terminal = createTerminal(io, 'stdout')
  if (isJson) {
    const workers = instances.map(({ id, registration }) => ({ id, registration }))
    terminal.printJson({ tasks, commandTasks, commands, workers, deliveries })
    return
  }
  if (tasks.length + commandTasks.length === 0) terminal.say('Nothing is stored.')
  if (tasks.length > 0) {
    const rows = tasks.map(({ id, owner, status, delivery, attempt, launchedAt, record }) => [
      oneLine(id, 60),
      oneLine(owner, 30),
      status,
      delivery,
      String(attempt),
      formatAge(launchedAt),
      oneLine(typeof record['goalPrompt'] === 'string' ? record['goalPrompt'] : '', GOAL_CHARS),
    ])
    formatTable(['TASK', 'OWNER', 'STATUS', 'DELIVERY', 'ATTEMPT', 'AGE', 'GOAL'], rows).forEach(terminal.print)
  }
  if (commandTasks.length > 0) {
    const ended = new Map<string, number>()
    for (const { taskId } of commands) ended.set(taskId, (ended.get(taskId) ?? 0) + 1)
    const rows = commandTasks.map(({ id, instanceId, status, createdAt, record: { name, commands: all } }) => [
      oneLine(id, 60),
      oneLine(instanceId, 40),
      status,
      `${ended.get(id) ?? 0}/${Array.isArray(all) ? all.length : 0}`,
      formatAge(createdAt),
      oneLine(typeof name === 'string' ? name : '', GOAL_CHARS),
    ])
    formatTable(['COMMAND TASK', 'INSTANCE', 'STATUS', 'COMMANDS', 'AGE', 'NAME'], rows).forEach(terminal.print)
  }
  const unconfirmed = deliveries.length
  if (unconfirmed > 0) terminal.say(`Messages that are not confirmed yet: ${unconfirmed}.`)
  if (instances.length > 0) terminal.say(`Remote workers that may connect again: ${instances.length}.`)
}

/** One row may stand for the last place in the order of submission, without a task. */
const isTask = ({ status }: StoredCommandTask): boolean => status !== FORGOTTEN

function showSessions(folder: string, isJson: boolean, io: ProgramIO): void {
  const sessions = readSessions(folder)
  const terminal = createTerminal(io, 'stdout')
  if (isJson) {
    terminal.printJson({
      sessions: sessions.map(({ session, file, pid, read }) => ({ session, file, pid, ...summaryOf(read) })),
    })
    return
  }
  if (sessions.length === 0) terminal.say('There are no sessions.')
  else {
    const rows = sessions.map(({ session, file, pid, read }) => {
      const { tasks = '?', running = '?', owed = '?' } = summaryOf(read)
      const name = oneLine(session ?? '(unknown)', 60)
      return [name, pid === undefined ? 'nobody' : String(pid), ...[tasks, running, owed].map(String), basename(file)]
    })
    formatTable(['SESSION', 'USED BY', 'TASKS', 'RUNNING', 'OWED', 'FILE'], rows).forEach(terminal.print)
  }
  for (const { read } of sessions) if ('error' in read) terminal.say(read.error.message)
}

interface Summary {
  readonly tasks?: number
  readonly running?: number
  readonly owed?: number
  readonly error?: string
}

function summaryOf(read: StoredSession['read']): Summary {
  if ('error' in read) return { error: read.error.message }
  const { tasks } = read.contents
  return {
    tasks: tasks.length,
    running: tasks.filter(({ status }) => !hasEnded(status)).length,
    owed: tasks.filter(({ delivery }) => delivery === 'owed' || delivery === 'leased').length,
  }
}

/** Each file of a path, with what else is known of it. */
function filesAt(path: string): readonly (StoredSession | Pick<StoredSession, 'file' | 'read'>)[] {
  return isFolder(path) ? readSessions(path) : [{ file: path, read: { contents: readStore(path) } }]
}

function exportRows(path: string, io: ProgramIO): void {
  const terminal = createTerminal(io, 'stdout')
  for (const { read, ...from } of filesAt(path)) {
    if ('error' in read) throw read.error
    const where = 'session' in from ? { session: from.session, file: from.file } : {}
    for (const table of STORE_TABLES) {
      for (const row of read.contents[table]) terminal.printJson({ ...where, table, row })
    }
  }
}

function check(path: string, isJson: boolean, io: ProgramIO): void {
  const terminal = createTerminal(io, 'stdout')
  const errors: Error[] = []
  for (const { file, read } of filesAt(path)) {
    if ('error' in read) errors.push(read.error)
    else if (isJson) terminal.printJson({ file, isSound: true, rows: countRows(read.contents) })
    else terminal.print(`${file} is sound: ${describeCounts(read.contents)}.`)
  }
  const [first, ...others] = errors
  for (const { message } of others) terminal.say(message)
  if (first !== undefined) throw first
}

const countRows = (contents: StoreContents): Readonly<Record<string, number>> =>
  Object.fromEntries(STORE_TABLES.map((table) => [table, contents[table].length]))

function describeCounts({ tasks, commandTasks, deliveries, instances }: StoreContents): string {
  const count = commandTasks.filter(isTask).length
  return `${tasks.length} tasks, ${count} command tasks, ${deliveries.length} messages, ${instances.length} instances`
}
