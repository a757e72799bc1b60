/** Copies the command tasks of a TaskManager into the journal. */
import type { TaskManager } from '../command-tasks/task-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Task, TaskProgressMessage } from '../protocol/command-tasks.js'
import { barState, CommandEntry, commandKey, commandState } from './command-entry.js'
import type { Journal } from './journal.js'
import type { PageEntry } from './page-entry.js'
import { rowText } from './texts.js'

export interface CommandSourceOptions {
  readonly taskManager: TaskManager
  readonly journal: Journal<PageEntry>
  /** The maximum size of what the journal keeps of one ended task, in bytes. */
  readonly maxTaskBytes: number
  /** Called after each change of a task, and once with `found` for each task that exists at the start. */
  readonly onChange: (entry: CommandEntry, change: 'found' | 'submitted' | 'started' | 'ended' | 'progress') => void
}

/** Copies the tasks of a TaskManager into the journal and keeps them up to date. Returns a function that stops this. */
export function followCommandTasks(options: CommandSourceOptions): () => void {
  const { taskManager, journal, onChange } = options

  const find = (id: string): CommandEntry | undefined => {
    const entry = journal.get(commandKey(id))
    return entry?.kind === 'command' ? entry : undefined
  }
  const add = (id: string): CommandEntry | undefined => {
    const task = taskManager.getTask(id)
    if (task === undefined) return undefined
    const entry = new CommandEntry(task, (taskId) => taskManager.getTask(taskId))
    journal.add(entry)
    journal.update(entry, { at: task.createdAt, event: 'queued', state: 'queued' })
    return entry
  }
  const end = (entry: CommandEntry, task: Task): void => {
    entry.keep(task, options.maxTaskBytes, taskManager.traceOf(task.id))
    journal.end(entry)
  }

  for (const task of taskManager.listTasks().reverse()) {
    const entry = add(task.id)
    if (entry === undefined) continue
    if (task.startedAt !== undefined) journal.update(entry, { at: task.startedAt, event: 'started', state: 'running' })
    if (task.completedAt !== undefined) {
      const state = commandState(task)
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
        ...omitUndefined({ total }),
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
    journal.update(entry, { at, event: `command ${barState(status, error)}`, detail })
    onChange(entry, isStart ? 'started' : 'progress')
  }
  const onComplete = (id: string): void => {
    const entry = find(id)
    const task = taskManager.getTask(id)
    if (entry === undefined || task?.completedAt === undefined || entry.isEnded) return
    const state = commandState(task)
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
