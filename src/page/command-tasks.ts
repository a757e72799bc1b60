/** The command tasks of a task manager in the journal. */
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { Task, TaskCommand, TaskProgressMessage } from '../protocol/command-tasks.js'
import { asyncKey } from './async-tasks.js'
import type { Journal, JournalEntry } from './journal.js'
import { Allowance, type KeptValue } from './kept-values.js'
import { rowText } from './texts.js'
import type { CommandBar, PageTask, PageTaskState } from './wire.js'

/** A command of an ended task. */
export interface KeptCommand extends CommandBar {
  /** The whole name. */
  readonly toolName: string
  readonly intention: string
  readonly timeout?: number | undefined
  readonly args: KeptValue
  readonly result?: KeptValue
  readonly error?: string
}

/** How many commands a row has. */
const ROW_COMMANDS = 20

type Row = Omit<PageTask, 'seq' | 'marks' | 'key' | 'kind' | 'state'>

export class CommandEntry implements JournalEntry {
  readonly kind = 'command'
  readonly key: string
  isEnded = false
  state: PageTaskState
  heldBytes = 0
  progress: PageTask['progress'] | undefined
  /** The commands of an ended task. */
  kept: readonly KeptCommand[] | undefined
  readonly id: string
  readonly instanceId: string
  readonly name: string
  readonly intention: string
  readonly #find: (id: string) => Task | undefined
  #last: Row | undefined

  constructor(task: Task, find: (id: string) => Task | undefined) {
    this.id = task.id
    this.key = commandKey(task.id)
    this.state = stateOf(task)
    this.instanceId = task.instanceId
    this.name = task.name
    this.intention = task.intention
    this.#find = find
  }

  /** Keeps what the task manager may forget. */
  keep(task: Task, maxBytes: number): void {
    const room = new Allowance(maxBytes)
    this.#last = rowOf(task, undefined)
    this.kept = task.commands.map((command): KeptCommand => {
      const { intention, timeout, args, result, error } = command
      return {
        ...barOf(command),
        ...{ toolName: command.tool_name, intention: room.keepText(intention), timeout, args: room.keep(args) },
        ...(result !== undefined && { result: room.keep(result) }),
        ...(error !== undefined && { error: room.keepText(error.message) }),
      }
    })
    this.heldBytes = room.used + COMMAND_BYTES * this.kept.length
  }

  row(): Row {
    if (this.isEnded && this.#last !== undefined) return this.#last
    const task = this.#find(this.id)
    if (task !== undefined) this.#last = rowOf(task, this.progress)
    return this.#last ?? { id: this.id, title: '', group: this.instanceId, createdAt: 0 }
  }
}

const COMMAND_BYTES = 300

export const commandKey = (id: string): string => `command:${id}`

const barStates = {
  pending: 'waiting',
  running: 'running',
  success: 'completed',
  error: 'failed',
  skipped: 'skipped',
} as const

export function barOf({ tool_name, status, startedAt, completedAt }: TaskCommand): CommandBar {
  return {
    tool: rowText(tool_name),
    state: barStates[status],
    ...(startedAt !== undefined && { startedAt }),
    ...(completedAt !== undefined && { endedAt: completedAt }),
  }
}

function rowOf(task: Task, progress: PageTask['progress'] | undefined): Row {
  const { id, name, commands, instanceId, createdAt, startedAt, completedAt, error, metadata } = task
  const parentId = metadata?.['asyncTaskId']
  return {
    id,
    title: rowText(name),
    group: instanceId,
    createdAt,
    ...(startedAt !== undefined && { startedAt }),
    ...(completedAt !== undefined && { endedAt: completedAt }),
    ...(typeof parentId === 'string' && { parentKey: asyncKey(parentId) }),
    ...(progress !== undefined && { progress }),
    commands: commands.slice(0, ROW_COMMANDS).map(barOf),
    commandCount: commands.length,
    ...(error !== undefined && { error: rowText(error.message) }),
  }
}

function stateOf({ status, error }: Task): PageTaskState {
  return status === 'failed' && error.code === 'COMMAND_TIMEOUT' ? 'timed-out' : status
}

export interface CommandSourceOptions {
  readonly taskManager: TaskManager
  readonly journal: Journal<JournalEntry>
  /** The most that is kept of one ended task, in bytes. */
  readonly maxTaskBytes: number
  /** Called after each change of a task, and with every one that there is at first. */
  readonly onChange: (entry: CommandEntry, change: 'found' | 'submitted' | 'started' | 'ended' | 'progress') => void
}

/** Follows the tasks of a task manager, those that it has first. Returns a function that stops. */
export function followCommandTasks(options: CommandSourceOptions): () => void {
  const { taskManager, journal, onChange } = options

  const find = (id: string): CommandEntry | undefined => {
    const entry = journal.get(commandKey(id))
    return entry instanceof CommandEntry ? entry : undefined
  }
  const add = (id: string): CommandEntry | undefined => {
    const task = taskManager.getTask(id)
    if (task === undefined) return undefined
    const entry = new CommandEntry(task, (taskId) => taskManager.getTask(taskId))
    journal.add(entry)
    journal.update(entry, { at: task.createdAt, event: 'queued' })
    return entry
  }
  const end = (entry: CommandEntry, task: Task): void => {
    entry.keep(task, options.maxTaskBytes)
    journal.end(entry)
  }

  for (const task of taskManager.listTasks()) {
    const entry = add(task.id)
    if (entry === undefined) continue
    if (task.startedAt !== undefined) journal.update(entry, { at: task.startedAt, event: 'started' })
    if (task.completedAt !== undefined) {
      const state = stateOf(task)
      journal.update(entry, { at: task.completedAt, event: state, state, detail: task.error?.message })
      end(entry, task)
    }
    onChange(entry, 'found')
  }

  const onSubmitted = (id: string): void => {
    if (find(id) !== undefined) return
    const entry = add(id)
    if (entry !== undefined) onChange(entry, 'submitted')
  }
  const onProgress = (message: TaskProgressMessage): void => {
    const entry = find(message.taskId)
    if (entry === undefined || entry.isEnded) return
    const { timestamp: at, status, commandIndex, totalCommands, tool_name, progress, total, error } = message
    const which = `${commandIndex + 1} of ${totalCommands}: ${tool_name}`
    if (progress !== undefined) {
      const text = message.message
      entry.progress = {
        progress,
        ...(total !== undefined && { total }),
        ...(text !== undefined && { message: rowText(text) }),
      }
      journal.update(entry)
      onChange(entry, 'progress')
      return
    }
    entry.progress = undefined
    const isStart = entry.state === 'queued' && status === 'running'
    if (isStart) journal.update(entry, { at, event: 'started', state: 'running' })
    const detail = error === undefined ? which : `${which}: ${error.message}`
    journal.update(entry, { at, event: `command ${barStates[status]}`, detail })
    onChange(entry, isStart ? 'started' : 'progress')
  }
  const onComplete = (id: string): void => {
    const entry = find(id)
    const task = taskManager.getTask(id)
    if (entry === undefined || task?.completedAt === undefined || entry.isEnded) return
    const state = stateOf(task)
    entry.progress = undefined
    journal.update(entry, { at: task.completedAt, event: state, state, detail: task.error?.message })
    end(entry, task)
    onChange(entry, 'ended')
  }

  const subscriptions = [
    taskManager.submitted$.subscribe(onSubmitted),
    taskManager.progress$.subscribe(onProgress),
    taskManager.complete$.subscribe(({ taskId }) => onComplete(taskId)),
  ]
  return () => subscriptions.forEach((subscription) => subscription.unsubscribe())
}
