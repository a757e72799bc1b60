/** Lists the tasks of a server over several requests, and finds a task by its id. */
import { TaskServerError } from '../../client/client-errors.js'
import type { TaskClient, TaskListOptions } from '../../client/task-client.js'
import { lookUpPrefix, meantOf } from '../../features/task-ids/task-lookup.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { MAX_LIST_LIMIT } from '../../protocol/client-messages.js'
import type { TaskSummary } from '../../protocol/command-tasks.js'

/** Lists at most `limit` tasks, the newest first. */
export async function listTasks(
  client: TaskClient,
  limit: number,
  filter: Pick<TaskListOptions, 'instanceId' | 'status'> = {},
): Promise<TaskSummary[]> {
  const tasks: TaskSummary[] = []
  let cursor: string | undefined
  do {
    const page = await client.list({
      ...filter,
      limit: Math.min(MAX_LIST_LIMIT, limit - tasks.length),
      ...omitUndefined({ cursor }),
    })
    tasks.push(...page.tasks)
    cursor = page.nextCursor
  } while (cursor !== undefined && tasks.length < limit)
  return tasks
}

/**
 * Returns the full id of a task, from its id or a unique prefix.
 * @param canBeMeant if several tasks match the prefix, only those for which this returns true count; if it returns true for none, all count
 * @throws AgentTasksError when no task matches, or several
 */
export async function findTaskId(
  client: TaskClient,
  idOrPrefix: string,
  canBeMeant?: (task: TaskSummary) => boolean,
): Promise<string> {
  if ((await client.get(idOrPrefix)) !== undefined) return idOrPrefix
  const candidates = meantOf(lookUpPrefix(await listTasks(client, Infinity), idOrPrefix), canBeMeant)
  const [task] = candidates
  if (task === undefined) throw new TaskServerError('TASK_NOT_FOUND', `There is no task ${idOrPrefix}.`)
  if (candidates.length === 1) return task.id
  const some = candidates.slice(0, 5).map(({ id, status }) => `${id} (${status})`)
  throw new TaskServerError('TASK_AMBIGUOUS', `${idOrPrefix} could be ${some.join(', ')}. Write more of the id.`)
}
