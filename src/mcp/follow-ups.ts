/**
 * The tools that texts for MCP clients recommend. Clients get separate tools to cancel, read and answer, because they may treat check_async_tasks as
 * read-only.
 */
import type { FollowUps } from '../tools/task-tool-options.js'

export const FOLLOW_UPS = {
  cancel: 'cancel_async_task',
  answer: { tool: 'answer_async_task', params: {} },
  read: { tool: 'read_task_output', params: {} },
} as const satisfies FollowUps
