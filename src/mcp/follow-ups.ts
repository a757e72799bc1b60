/**
 * The tools that texts for MCP clients recommend. Clients get separate tools to cancel, read and answer, because they may treat check_async_tasks as
 * read-only.
 */
import type { FollowUps } from '../tools/task-tool-options.js'

export const FOLLOW_UPS = {
  cancel: 'cancel_async_task',
  answer: { tool: 'answer_async_task', params: {} },
  read: { tool: 'read_task_output', params: {} },
  // A server cannot start a turn of the client's model.
  arrival:
    'Its result comes with the answer to your next call of any tool of this server: do not poll for it. If you have no other work, call wait_for_async_tasks.',
} as const satisfies FollowUps

/** For clients whose hooks bring results to the model. */
export const WOKEN_FOLLOW_UPS = {
  ...FOLLOW_UPS,
  arrival:
    'Its result is brought to you when it has ended, also after the end of your turn: do not poll or wait for it.',
} as const satisfies FollowUps

/** For anonymous clients, which get no result that they do not ask for by its full id. */
export const ANONYMOUS_FOLLOW_UPS = {
  ...FOLLOW_UPS,
  arrival: 'To get its result, call wait_for_async_tasks with its full ID in task_ids.',
} as const satisfies FollowUps
