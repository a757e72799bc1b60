/**
 * The tools that texts for MCP clients recommend. Clients get separate tools to cancel, read and answer, because they may treat check_async_tasks as
 * read-only.
 */
import type { FollowUps } from '../tools/task-tool-options.js'

/**
 * How a result reaches the model of a client:
 *
 * - `call`: with the answer to its next call of a tool
 * - `hook`: a hook of the client brings it, also after the end of a turn
 * - `prompt`: a hook brings it with a prompt or at the end of a turn, but cannot start a turn
 * - `never`: the client closes its connection after one call
 */
export type ResultArrival = 'call' | 'hook' | 'prompt' | 'never'

export const FOLLOW_UPS = {
  cancel: 'cancel_async_task',
  answer: { tool: 'answer_async_task', params: {} },
  read: { tool: 'read_task_output', params: {} },
  // A server cannot start a turn of the client's model.
  arrival:
    'Its result comes with the answer to your next call of any tool of this server: do not poll for it. If you have no other work, call wait_for_async_tasks.',
} as const satisfies FollowUps

export const FOLLOW_UPS_BY_ARRIVAL: Readonly<Record<ResultArrival, FollowUps>> = {
  call: FOLLOW_UPS,
  hook: {
    ...FOLLOW_UPS,
    arrival:
      'Its result is brought to you when it has ended, also after the end of your turn: do not poll or wait for it.',
  },
  prompt: {
    ...FOLLOW_UPS,
    arrival:
      'Its result is brought to you at the end of your turn, or with the next prompt of the user if it ends later: do not poll for it. To have it in this turn, call wait_for_async_tasks.',
  },
  never: {
    ...FOLLOW_UPS,
    arrival:
      'You do not get its result by itself, because your client closes its connection after this call. To wait for a result, start the task without async.',
  },
}

/** For anonymous clients, which get no result that they do not ask for by its full id. */
export const ANONYMOUS_FOLLOW_UPS = {
  ...FOLLOW_UPS,
  arrival: 'To get its result, call wait_for_async_tasks with its full ID in task_ids.',
} as const satisfies FollowUps
