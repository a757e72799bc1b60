/** Converts command tasks to entries in the history of a store. */
import { jsonBytes } from '../data/json-size.js'
import type { Task } from '../protocol/command-tasks.js'
import type { PastTask } from '../store/history/task-history.js'

/**
 * The maximum size of a task in the history, in bytes of JSON (256 KiB). A larger task is stored without results, arguments and metadata, and with at
 * most 100 commands.
 */
const MAX_BYTES = 256 * 1024

/** Converts an ended task to an entry of the history. Leaves out the large parts of a task that exceeds `MAX_BYTES`. */
export function pastCommandTask(task: Task): PastTask {
  return jsonBytes(task, MAX_BYTES) <= MAX_BYTES
    ? asPastTask(task)
    : { ...asPastTask(withoutContent(task)), isCut: true }
}

/** Converts an ended task to an entry of the history, without a limit. */
export function asPastTask(task: Task): PastTask {
  const { id, instanceId, name, status, completedAt = 0 } = task
  return { id, kind: 'command task', owner: instanceId, name, status, completedAt, record: { ...task } }
}

function withoutContent({ metadata: _, ...task }: Task): Task {
  return {
    ...task,
    commands: task.commands.slice(0, 100).map(({ result: _result, ...command }) => ({ ...command, args: {} })),
  }
}
