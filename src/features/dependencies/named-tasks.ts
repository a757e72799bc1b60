/** Validates the ids in `after`: the owner of the new task must see these tasks, and they must not wait for the new task. */
import { ownerOfRun } from '../../../machines/run-owner.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { InvalidInputError } from '../../errors.js'
import { isoTime } from '../../data/duration.js'
import { isSeenBy, tasksAbove } from '../families/families.js'
import { prunedTasks } from '../history/pruned-tasks.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

export interface NamingLaunch {
  readonly id: string
  readonly owner: string
  /** The task whose run launches it. */
  readonly parent: TaskEntry | undefined
}

/**
 * Returns the tasks with these ids.
 * @throws INVALID_INPUT for the first task that the new task cannot wait for
 */
export function namedTasks(
  registry: TaskRegistry,
  after: readonly string[],
  launch: NamingLaunch,
): ReadonlyMap<string, TaskEntry> {
  return new Map(after.map((id, index) => [id, namedTask(registry, id, `input.after[${index}]`, launch)]))
}

function namedTask(
  registry: TaskRegistry,
  named: string,
  field: string,
  { id, owner: given, parent }: NamingLaunch,
): TaskEntry {
  const { history } = registry
  const refuse = (expected: string): never => {
    throw new InvalidInputError(field, named, expected)
  }
  if (named === id) return refuse('the id of a task other than the new one')
  if (tasksAbove(history, parent).some(({ record }) => record.id === named)) {
    return refuse(
      'the id of a task other than the parent of the new task or a task above it, because these may wait for the new task',
    )
  }
  const entry = history.get(named)
  if (entry === undefined) {
    const pruned = registry.use(prunedTasks).find(named)
    return pruned?.id === named
      ? refuse(`the id of a task that is kept; the record of this one was pruned at ${isoTime(pruned.prunedAt)}`)
      : refuse('the id of a task that is kept; no task has this id')
  }
  const owner = parent === undefined ? given : ownerOfRun(parent.record.id)
  const source = { getTask: (taskId: string) => history.get(taskId)?.record }
  if (isSeenBy(source, entry.record, owner)) return entry
  return refuse(`the id of a task of owner ${JSON.stringify(owner)}; this one belongs to another owner`)
}
