/** The tasks of a store. They are only read, even while another process owns the store. */
import { setTimeout as wait } from 'node:timers/promises'
import { folderName } from '../../features/output/run-files.js'
import { readQuestions } from '../../async-tasks/recovery/stored-questions.js'
import { readRun } from '../../async-tasks/recovery/stored-run.js'
import { FORGOTTEN, restoreTasks } from '../../command-tasks/stored-tasks.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { canFollow } from '../../engine/program-folder.js'
import { InvalidInputError } from '../../errors.js'
import type { Task } from '../../protocol/command-tasks.js'
import { partsOf } from '../../store/locations/read-store-at.js'
import { runsOf } from '../../store/sqlite/store-file.js'
import type { StoredTask } from '../../store/store.js'
import { fromStore, fromTask, interrupted, type ListedTask } from './listed-task.js'
import { createComparison, matches, pickTask, type ShownTask, type TaskFilter, type TaskSource } from './task-source.js'

/** A task in its listed form, and a function that returns all its details. */
interface Kept {
  readonly task: ListedTask
  readonly show: () => ShownTask
}

export function storeSource(location: string): TaskSource {
  const list = async (limit: number, filter: TaskFilter = {}): Promise<readonly ListedTask[]> =>
    (await readTasks(location))
      .map(({ task }) => task)
      .filter((task) => matches(task, filter))
      .slice(0, limit)
  return {
    name: 'The store',
    list,
    find: async (idOrPrefix, canBeMeant) => pickTask(await list(Infinity), idOrPrefix, canBeMeant),
    show: async ({ task_id, kind }) => {
      const all = await readTasks(location)
      const kept = all.find(({ task }) => task.task_id === task_id && task.kind === kind)
      return kept === undefined ? { ...pickTask([], task_id) } : kept.show()
    },
    cancel: () => {
      const expected = 'a running host, because a store can only be read: use --page, or --url for a server'
      return Promise.reject(new InvalidInputError('--store', location, expected))
    },
    changes: async function* ({ limit, intervalMs, signal }) {
      const changed = createComparison()
      for (;;) {
        yield changed(await list(limit))
        await wait(intervalMs, undefined, { signal })
      }
    },
  }
}

/**
 * Reads all tasks, the newest first.
 * @throws StoreError when the store cannot be read
 */
async function readTasks(location: string): Promise<Kept[]> {
  const kept = (await partsOf(location)).flatMap(({ file, owner, read }): Kept[] => {
    if ('error' in read) throw read.error
    const { tasks, commandTasks, commands } = read.contents
    const stored = commandTasks.filter(({ status }) => status !== FORGOTTEN)
    const hasOwner = owner !== undefined
    return [
      ...tasks.map((row) => {
        const present = hasOwner || goesOn(row, file) ? <Task>(task: Task): Task => task : interrupted
        return { task: present(fromStore(row)), show: () => present(showAsync(row)) }
      }),
      ...restoreTasks(stored, commands, location).map(({ task }) => {
        const present = hasOwner ? <Task>(of: Task): Task => of : interrupted
        return {
          task: present(fromTask(task)),
          show: () => present(showCommands(task, hasOwner ? 'running' : 'interrupted')),
        }
      }),
    ]
  })
  return kept.sort((a, b) => b.task.createdAt - a.task.createdAt)
}

/** Whether a run goes on without its host: its program runs, or has ended and the next host reads its result, or a worker does its work. */
function goesOn(row: StoredTask, file: string): boolean {
  const { id, launchedAt, attempt } = row
  const { key, program } = readRun(row)
  if (key === undefined) return false
  return program === undefined || canFollow(`${runsOf(file)}/${folderName({ id, launchedAt, attempt })}`, program)
}

function showAsync(row: StoredTask): ShownTask {
  const { output, lateOutput } = row.record
  const questions = readQuestions(row.record)
  return {
    ...fromStore(row),
    ...omitUndefined({ result: output ?? lateOutput }),
    ...(questions.length > 0 && { questions }),
  }
}

/** @param current what is shown of the command that has started and not ended: the store has no row of it */
function showCommands(task: Task, current: 'running' | 'interrupted'): ShownTask {
  const started = task.status === 'running' ? task.commands.findIndex(({ status }) => status === 'pending') : -1
  const commands = task.commands.map(({ tool_name, status, args, result, error }, index) => ({
    tool_name,
    status: index === started ? current : status,
    ...omitUndefined({ args, result, error: error?.message, errorCode: error?.code }),
  }))
  return { ...fromTask(task), intention: task.intention, commands }
}
