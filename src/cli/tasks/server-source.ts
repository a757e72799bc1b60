/** The tasks of a task server, read over its client socket. This source has only command tasks. */
import { setTimeout as wait } from 'node:timers/promises'
import { TaskServerError } from '../../client/client-errors.js'
import type { TaskClient } from '../../client/task-client.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { taskStatusSchema, type TaskStatus } from '../../protocol/command-tasks.js'
import { AgentTasksError } from '../../errors.js'
import { fromSummary, fromTask, type ListedTask } from './listed-task.js'
import { findTaskId, listTasks } from './task-list.js'
import { createComparison, type ShownCommand, type TaskFilter, type TaskSource } from './task-source.js'

export function serverSource(client: TaskClient): TaskSource {
  const list = async (limit: number, filter: TaskFilter = {}): Promise<readonly ListedTask[]> => {
    const { instance: instanceId } = filter
    const status = checkFilter(filter)
    return (await listTasks(client, limit, omitUndefined({ instanceId, status }))).map(fromSummary)
  }
  return {
    name: 'The server',
    list,
    find: async (idOrPrefix, canBeMeant) => {
      const task_id = await findTaskId(client, idOrPrefix, canBeMeant && ((task) => canBeMeant(fromSummary(task))))
      return { task_id, kind: 'command' }
    },
    show: async ({ task_id }) => {
      const task = await client.get(task_id)
      if (task === undefined) throw new TaskServerError('TASK_NOT_FOUND', `There is no task ${task_id}.`)
      const commands: ShownCommand[] = []
      for (const [index, { tool_name, status, args, result, resultRef, error }] of task.commands.entries()) {
        const whole = resultRef === undefined ? result : await client.result(task_id, index)
        commands.push({
          tool_name,
          status,
          ...omitUndefined({ args, result: whole, error: error?.message, errorCode: error?.code }),
        })
      }
      return { ...fromTask(task), intention: task.intention, commands }
    },
    cancel: ({ task_id }) => client.cancel(task_id),
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
 * Refuses a filter that no command task can match, because an empty list would hide the mistake.
 * @returns the status of the filter
 */
function checkFilter({ kind, owner, subagent, status }: TaskFilter): TaskStatus | undefined {
  const refuse = (option: string, why = 'a server has command tasks only'): never => {
    throw new AgentTasksError('INVALID_INPUT', `${option} needs --page or --store: ${why}.`)
  }
  if (kind === 'async') refuse('--kind async')
  if (owner !== undefined) refuse('--owner')
  if (subagent !== undefined) refuse('--subagent')
  return (
    taskStatusSchema.options.find((known) => known === status) ??
    (status && refuse(`--status ${status}`, 'a server does not report this state'))
  )
}
