/** `agent-tasks store show|export|check|copy`: reads a store, even while another process owns it, or copies it. Only the target of a copy is written. */
import { isUndelivered } from '../../machines/task-entry.js'
import { hasEnded } from '../../machines/task-status.js'
import { basename } from 'node:path'
import type { Command } from 'commander'

import { FORGOTTEN } from '../command-tasks/stored-tasks.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { openStoreAt } from '../store/locations/open-store-at.js'
import { isFolder, partsOf, readSessionsAt, type StoredSession } from '../store/locations/read-store-at.js'
import { shownLocation, STORE_NAMES, STORE_URLS, storeUrlAt } from '../store/locations/store-url.js'
import { readStore, STORE_TABLES, StoreError, type Store, type StoreContents } from '../store/index.js'
import { formatAge, formatTable, oneLine } from './table.js'
import { createTerminal, type ProgramIO, type Terminal } from './terminal.js'
import { putsOf, type StoredCommandTask } from '../store/store.js'

/** The maximum number of characters of a goal in a line. */
const GOAL_CHARS = 60

export function addStoreCommand(program: Command, io: ProgramIO): void {
  const store = program
    .command('store')
    .description(`commands for the file of a store, a folder of sessions, or a ${STORE_NAMES}`)
  const path = [
    '<store>',
    `the file of the store, as in .agent/tasks.db, the folder of \`agent-tasks mcp --store\`, or ${STORE_URLS}`,
  ] as const
  store
    .command('show')
    .description('list the stored tasks, and which results are owed')
    .argument(...path)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ agent-tasks store show .agent/tasks.db\n  $ agent-tasks store show .agent/tasks\n  $ agent-tasks store show postgres://agent@db.example/agents',
    )
    .action(async (at: string, { json }: { readonly json?: boolean }) => {
      const sessions = await readSessionsAt(at)
      if (sessions === undefined) show(readStore(at), json === true, io)
      else showSessions(sessions, json === true, io)
    })
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
    .description('check every page and every row for damage')
    .argument(...path)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe exit code is 2 when a file is not a store, or is damaged.\n\nExamples:\n  $ agent-tasks store check .agent/tasks.db',
    )
    .action((at: string, { json }: { readonly json?: boolean }) => check(at, json === true, io))
  store
    .command('copy')
    .description(`copy a store into an empty one: from a file to a ${STORE_NAMES}, or back`)
    .argument('<from>', `a file, or ${STORE_URLS}, that no process uses`)
    .argument('<to>', `a new file, or ${STORE_URLS} with an empty session`)
    .addHelpText(
      'after',
      `
Either everything is copied, or nothing is. Do not start hosts on both stores, because each would deliver the results that are owed. The output of
programs that survived their host is not copied, and in a PostgreSQL their tasks are interrupted.

Examples:
  $ agent-tasks store copy .agent/tasks.db 'postgres://agent@db.example/agents?session=server'`,
    )
    .action((from: string, to: string) => copy(from, to, io))
}

function show(contents: StoreContents, isJson: boolean, io: ProgramIO): void {
  const { tasks, deliveries, commands, instances, ...rest } = contents
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

/** Excludes one row that is not a task: it only stores the last position in the order of submission. */
const isTask = ({ status }: StoredCommandTask): boolean => status !== FORGOTTEN

function showSessions(sessions: readonly StoredSession[], isJson: boolean, io: ProgramIO): void {
  const terminal = createTerminal(io, 'stdout')
  if (isJson) {
    terminal.printJson({
      sessions: sessions.map(({ session, file, owner, read }) => ({
        session,
        file,
        ...(typeof owner === 'string' ? { owner } : { pid: owner }),
        ...summaryOf(read),
      })),
    })
    return
  }
  if (sessions.length === 0) terminal.say('There are no sessions.')
  else {
    const rows = sessions.map(({ session, file, owner, read }) => {
      const { tasks = '?', running = '?', owed = '?' } = summaryOf(read)
      const name = oneLine(session ?? '(unknown)', 60)
      return [
        name,
        owner === undefined ? 'nobody' : String(owner),
        ...[tasks, running, owed].map(String),
        basename(file),
      ]
    })
    formatTable(['SESSION', 'USED BY', 'TASKS', 'RUNNING', 'OWED', 'FILE'], rows).forEach(terminal.print)
  }
  throwFirst(
    sessions.flatMap(({ read }) => ('error' in read ? [read.error] : [])),
    terminal,
  )
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
    owed: tasks.filter(isUndelivered).length,
  }
}

async function exportRows(location: string, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  for (const { read, ...from } of await partsOf(location)) {
    if ('error' in read) throw read.error
    const where = 'session' in from ? { session: from.session, file: from.file } : {}
    for (const table of STORE_TABLES) {
      for (const row of read.contents[table]) terminal.printJson({ ...where, table, row })
    }
  }
}

async function check(location: string, isJson: boolean, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const errors: Error[] = []
  for (const { file, read, ...part } of await partsOf(location)) {
    // In a folder, the file names the session.
    const session = !isFolder(location) && 'session' in part ? part.session : undefined
    const name = session === undefined ? file : `${file}, session ${JSON.stringify(session)},`
    if ('error' in read) errors.push(read.error)
    else if (isJson) {
      terminal.printJson({ file, ...omitUndefined({ session }), isSound: true, rows: countRows(read.contents) })
    } else terminal.print(`${name} is sound: ${describeCounts(read.contents)}.`)
  }
  throwFirst(errors, terminal)
}

/** Prints all errors but the first, and throws the first, which determines the exit code. */
function throwFirst([first, ...others]: readonly Error[], terminal: Terminal): void {
  for (const { message } of others) terminal.say(message)
  if (first !== undefined) throw first
}

async function copy(from: string, to: string, io: ProgramIO): Promise<void> {
  await checkExists(from)
  const source = await openAt(from)
  try {
    const contents = await contentsOf(source)
    const target = await openAt(to)
    try {
      if (countAll(await contentsOf(target)) > 0) {
        throw new StoreError('STORE_INVALID', `${target.name ?? to}: it holds tasks already. Copy to an empty store.`)
      }
      const changes = putsOf(contents)
      if (changes.length > 0) await target.write(changes, ({ message }) => createTerminal(io, 'stdout').say(message))
    } finally {
      await target.close()
    }
    createTerminal(io, 'stdout').print(`Copied: ${describeCounts(contents)}. Its history is not copied.`)
  } finally {
    await source.close()
  }
}

/**
 * Checks that there is a store, because opening one creates it.
 * @throws StoreError when there is none, or it cannot be read
 */
async function checkExists(location: string): Promise<void> {
  const url = storeUrlAt(location, 'store', 'default')
  if (url === undefined) {
    if (!isFolder(location)) readStore(location)
    return
  }
  if ((await url.read()).length > 0) return
  const session = JSON.stringify(url.options.session)
  throw new StoreError('STORE_INVALID', `${shownLocation(location)}: there is no session ${session}.`)
}

/**
 * Opens a store as its owner.
 * @throws StoreError when the store cannot be opened
 * @throws INVALID_SETTING for an invalid location
 */
function openAt(location: string): Promise<Store> {
  if (!isFolder(location)) return openStoreAt(location, 'store')
  const message = `${location} is a folder of sessions: copy one of its files, which \`agent-tasks store show\` lists.`
  throw new StoreError('STORE_INVALID', message)
}

/** Opens a store and returns its content, with the turns. */
async function contentsOf(store: Store): Promise<StoreContents> {
  const contents = store.open()
  return { ...contents, turns: (await store.turns?.read()) ?? [] }
}

const countAll = (contents: StoreContents): number =>
  Object.values(countRows(contents)).reduce((total, count) => total + count, 0)

const countRows = (contents: StoreContents): Readonly<Record<string, number>> =>
  Object.fromEntries(STORE_TABLES.map((table) => [table, contents[table].length]))

function describeCounts({ tasks, commandTasks, deliveries, instances, turns }: StoreContents): string {
  const count = commandTasks.filter(isTask).length
  const ofTurns = turns.length > 0 ? `, ${turns.length} turns` : ''
  return `${tasks.length} tasks, ${count} command tasks, ${deliveries.length} messages, ${instances.length} instances${ofTurns}`
}
