/** Follows a task to its end: what is shown meanwhile, what is printed then, and the exit code. */
import type { TaskClient, TaskSubmission } from '../client/task-client.js'
import type { Task, TaskCompleteMessage } from '../protocol/command-tasks.js'
import { toolCallResultSchema } from '../protocol/tool-calls.js'
import { EXIT, type ExitCode } from './exit-codes.js'
import { createTaskView } from './task-view.js'
import type { Terminal } from './terminal.js'

const exitCodes = {
  completed: EXIT.ok,
  failed: EXIT.taskFailed,
  cancelled: EXIT.taskCancelled,
} as const satisfies Record<TaskCompleteMessage['status'], ExitCode>

export interface FollowOptions {
  readonly terminal: Terminal
  readonly isJson: boolean
  /** The task as it was submitted just now. */
  readonly submitted?: TaskSubmission
  /** Ends the following, not the task. */
  readonly signal: AbortSignal
}

/**
 * As text: progress beside the result, and then what the commands returned. As JSON: every event as it came, a line each.
 * @throws what `TaskClient.watch` does
 */
export async function followTask(client: TaskClient, taskId: string, options: FollowOptions): Promise<ExitCode> {
  const { terminal, isJson, signal, submitted } = options
  const view = createTaskView(terminal)
  let end: TaskCompleteMessage | undefined
  if (submitted !== undefined && !isJson) view.snapshot(submitted)
  const onSnapshot = (task: Task): void => {
    if (!isJson) view.snapshot(task)
  }
  try {
    for await (const event of client.watch(taskId, { signal, onSnapshot })) {
      if (isJson) terminal.printJson(event)
      else view.show(event)
      if (event.type === 'task_complete') end = event
    }
  } finally {
    view.end()
  }
  // A watch ends with the end of its task, or throws.
  if (end === undefined) throw new Error(`The watch of ${taskId} ended without the end of the task.`)
  if (!isJson) for (const line of resultLines(end)) terminal.print(line)
  return exitCodes[end.status]
}

/** The text that the commands returned, or their content as JSON where it is no text. */
function resultLines({ results }: TaskCompleteMessage): string[] {
  return results.flatMap(({ status, result }) => {
    if (status !== 'success' || result === undefined) return []
    const parsed = toolCallResultSchema.safeParse(result)
    if (!parsed.success) return [JSON.stringify(result)]
    return parsed.data.content.map((part) => {
      const { text } = part as { text?: unknown }
      return typeof text === 'string' ? text : JSON.stringify(part)
    })
  })
}
