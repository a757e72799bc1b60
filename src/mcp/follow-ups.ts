/** The tools that texts for MCP clients name. Cancelling, reading and answering have their own tools, because check_async_tasks is read-only. */
import type { FollowUps } from '../tools/task-tool-options.js'

export const FOLLOW_UPS = {
  cancel: 'cancel_async_task',
  answer: { tool: 'answer_async_task', params: {} },
  read: { tool: 'read_task_output', params: {} },
} as const satisfies FollowUps
