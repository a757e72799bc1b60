/** The tool send_to_task: tells a running task something. */
import { z } from 'zod'
import { hasNotEnded, isCertain } from '../async-tasks/task-lookup.js'
import { lazily } from '../protocol/lazily.js'
import { checkOptions } from '../protocol/option-checks.js'
import { ownedOptionTypes, type AsyncTaskToolOptions } from './task-tool-options.js'
import { findTask, taskViews } from './task-view.js'
import type { HostTool } from './tool-descriptor.js'
import { outputOf } from './tool-output.js'
import { defineTool, errorResult, textResult, type Tool } from './tool.js'
import { strictObject } from '../protocol/strict-object.js'

export const sendToTaskSchema = lazily(() =>
  strictObject({
    task_id: z.string().describe('The ID of a running task, or a unique prefix.'),
    message: z.string().min(1).describe('What to tell it.'),
  }),
)

/**
 * The parameters of send_to_task.
 * @useDeclaredType
 */
export type SendToTaskParams = z.input<ReturnType<typeof sendToTaskSchema>>

/** Options of `createSendToTaskTool`. */
export interface SendToTaskOptions extends AsyncTaskToolOptions {
  /** Restricts the tool to the tasks of this owner. Default: the tasks of every owner. */
  readonly owner?: string
}

const NAME = 'send_to_task'

/**
 * Creates the tool `send_to_task`.
 * @throws InvalidInputError for an unknown or wrong option
 */
export function createSendToTaskTool(options: SendToTaskOptions): Tool<ReturnType<typeof sendToTaskSchema>> {
  checkOptions(options, ownedOptionTypes)
  const viewOf = taskViews(options)
  return defineTool({
    name: NAME,
    description:
      'Send a follow-up message to a running async task. It is refused, with the reason, when the task takes none.',
    inputSchema: sendToTaskSchema(),
    describe: ({ task_id }) => `Send a message to async task '${task_id}'`,
    run: ({ task_id, message }, context) => {
      const view = viewOf(context)
      const { manager } = view
      const found = findTask(view, task_id, hasNotEnded)
      if ('refusal' in found) return found.refusal
      const { id } = found.task
      if (!isCertain(manager, task_id, found.task)) {
        const text = `Nothing was sent: '${task_id}' is short for ${id}, which no list has shown yet. To send to that task, use its full ID.`
        return errorResult('parameter_validation', text)
      }
      const result = manager.sendToTask(id, message)
      const text = result.sent ? `Sent to task ${id}.` : `Not sent: ${result.reason}`
      const metadata = { id, sent: result.sent }
      return result.sent
        ? textResult(text, metadata)
        : errorResult('execution_failed', result.reason, { llmContent: text, returnDisplay: text, metadata })
    },
  })
}

/** What `send_to_task` is. */
export const sendToTaskTool: HostTool<ReturnType<typeof createSendToTaskTool>> = {
  name: NAME,
  title: 'Send a message to a task',
  summary: 'Sends a message to a running task that takes messages. Over MCP: whose program has `"stdin": "messages"`.',
  purpose: 'sends a running task a message.',
  brief: 'tells it more',
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  output: lazily(() => outputOf({ task_id: ['id', z.string()], sent: ['sent', z.boolean()] })),
  create: ({ shown }) => createSendToTaskTool(shown),
}
