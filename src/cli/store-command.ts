/** `agent-tasks store show|export|check FILE`: looks into a store, also while its owner runs. Nothing is changed. */
import type { Command } from 'commander'
import { FORGOTTEN } from '../command-tasks/stored-tasks.js'
import { readStore, STORE_TABLES, type StoreContents, type StoredCommandTask } from '../store/index.js'
import { formatAge, formatTable, oneLine } from './table.js'
import { createTerminal, type ProgramIO } from './terminal.js'

/** How much of a goal a line shows, in characters. */
const GOAL_CHARS = 60

export function addStoreCommand(program: Command, io: ProgramIO): void {
  const store = program.command('store').description('commands for the file of a store')
  const file = ['<file>', 'the file of the store, as in .agent/tasks.db'] as const
  store
    .command('show')
    .description('list what is stored, and what is owed')
    .argument(...file)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExamples:\n  $ agent-tasks store show .agent/tasks.db')
    .action((path: string, { json }: { readonly json?: boolean }) => show(path, json === true, io))
  store
    .command('export')
    .description('print every row as a line of JSON')
    .argument(...file)
    .addHelpText(
      'after',
      '\nExamples:\n  $ agent-tasks store export .agent/tasks.db | jq -r \'select(.table == "tasks") | .row.id\'',
    )
    .action((path: string) => exportRows(path, io))
  store
    .command('check')
    .description('look for damage: every page and every row')
    .argument(...file)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe exit code is 2 when the file is no store, or is damaged.\n\nExamples:\n  $ agent-tasks store check .agent/tasks.db',
    )
    .action((path: string, { json }: { readonly json?: boolean }) => check(path, json === true, io))
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

function exportRows(path: string, io: ProgramIO): void {
  const contents = readStore(path)
  const terminal = createTerminal(io, 'stdout')
  for (const table of STORE_TABLES) for (const row of contents[table]) terminal.printJson({ table, row })
}

function check(path: string, isJson: boolean, io: ProgramIO): void {
  const contents = readStore(path)
  const terminal = createTerminal(io, 'stdout')
  if (isJson) terminal.printJson({ file: path, isSound: true, rows: countRows(contents) })
  else terminal.print(`${path} is sound: ${describeCounts(contents)}.`)
}

const countRows = (contents: StoreContents): Readonly<Record<string, number>> =>
  Object.fromEntries(STORE_TABLES.map((table) => [table, contents[table].length]))

function describeCounts({ tasks, commandTasks, deliveries, instances }: StoreContents): string {
  const count = commandTasks.filter(isTask).length
  return `${tasks.length} tasks, ${count} command tasks, ${deliveries.length} messages, ${instances.length} instances`
}
