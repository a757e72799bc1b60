/** The tool send_to_task: sends a message to a running task, or continues one that has ended. */
import { z } from 'zod'
import type { SettledTaskInfo } from '../../../machines/records.js'
import { isTerminal } from '../../../machines/task-entry.js'
import { taskHistory } from '../history/past-tasks.js'
import { hasNotEnded, isCertain } from '../task-ids/task-lookup.js'
import { lazily } from '../../protocol/lazily.js'
import { checkOptions } from '../../protocol/option-checks.js'
import { ownedOptionTypes, type AsyncTaskToolOptions } from '../../tools/task-tool-options.js'
import { findTask, taskViews } from '../../tools/task-view.js'
import { untilStored } from '../../tools/stored-launch.js'
import { STARTS_WORK, type HostTool } from '../../tools/tool-descriptor.js'
import { outputOf } from '../../tools/tool-output.js'
import { defineTool, errorResult, textResult, type Tool, type ToolResult } from '../../tools/tool.js'
import { strictObject } from '../../protocol/strict-object.js'

export const sendToTaskSchema = lazily(() =>
  strictObject({
    task_id: z.string().describe('The ID of a task, or a unique prefix.'),
    message: z.string().min(1).describe('The message for the task.'),
  }),
)

/** Options of `createSendToTaskTool`. */
export interface SendToTaskOptions extends AsyncTaskToolOptions {
  /** Restricts the tool to the tasks of this owner. Default: the tasks of every owner. */
  readonly owner?: string
}

const NAME = 'send_to_task'

/**
 * Creates the tool `send_to_task`, which sends a message to a running task or continues a task that has ended.
 * @param options the manager, and the owner of the visible tasks
 * @returns the tool
 * @throws INVALID_INPUT for an unknown or wrong option
 */
export function createSendToTaskTool(options: SendToTaskOptions): Tool<ReturnType<typeof sendToTaskSchema>> {
  checkOptions(options, ownedOptionTypes)
  const viewOf = taskViews(options)
  return defineTool({
    name: NAME,
    description: 'Send a follow-up message to a running async task. One that has ended is continued, as a new task.',
    inputSchema: sendToTaskSchema(),
    describe: ({ task_id }) => `Send a message to async task '${task_id}'`,
    run: ({ task_id, message }, context) => {
      const view = viewOf(context)
      const { manager } = view
      const resume = async (task: string | SettledTaskInfo): Promise<ToolResult> => {
        const { id, continues = '' } = manager.continueTask(task, message)
        await untilStored(manager, id)
        const text = `Task ${id} continues task ${continues}, which had ended. Its result is delivered when it has ended, too.`
        return textResult(text, { id, sent: true, continues })
      }
      const found = findTask(view, task_id, hasNotEnded)
      if ('refusal' in found) {
        const past = manager.reads.use(taskHistory).find(found.pruned ?? task_id, view.owner)
        return past.then((task) => (task === undefined ? found.refusal : resume(task)))
      }
      const { id } = found.task
      if (!isCertain(manager, task_id, found.task)) {
        const text = `Nothing was sent: '${task_id}' is short for ${id}, which no list has shown yet. To send to that task, use its full ID.`
        return errorResult('parameter_validation', text)
      }
      if (isTerminal(found.task)) return resume(id)
      const result = manager.sendToTask(id, message)
      const text = result.sent ? `Sent to task ${id}.` : `Not sent: ${result.reason}`
      const metadata = { id, sent: result.sent }
      return result.sent
        ? textResult(text, metadata)
        : errorResult('execution_failed', result.reason, { llmContent: text, returnDisplay: text, metadata })
    },
  })
}

export const sendToTaskTool: HostTool<ReturnType<typeof createSendToTaskTool>> = {
  name: NAME,
  title: 'Send a message to a task',
  summary:
    'Sends a message to a running task that takes messages (over MCP: whose program has `"stdin": "messages"`), or continues a task that has ended.',
  purpose: 'sends a running task a message, or continues one that has ended.',
  brief: 'sends it more',
  hints: STARTS_WORK,
  output: lazily(() => outputOf({ task_id: ['id', z.string()], sent: ['sent', z.boolean()] })),
  create: ({ shown }) => createSendToTaskTool(shown),
}
