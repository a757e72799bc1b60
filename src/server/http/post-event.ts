/** `POST /events`: an event from outside, such as that of a webhook, for runs that wait for it with `context.waitFor`. */
import { z } from 'zod'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import { strictObject } from '../../protocol/strict-object.js'

const eventSchema = lazily(() =>
  strictObject({ event: z.string(), value: z.unknown().optional(), taskId: z.string().optional() }),
)

/** Sends an event. Without the id of a task, the event goes to all tasks of the caller. */
export type SendEvent = (event: string, value: unknown, taskId: string | undefined) => Promise<readonly string[]>

export interface EventAnswer {
  readonly status: 200 | 400 | 409 | 503
  readonly body:
    { readonly taskIds: readonly string[] } | { readonly error: string; readonly code: string; readonly field?: string }
}

/** Sends the event in the body of a request. The event is stored when the promise resolves. An unexpected error rejects the promise. */
export async function postEvent(body: unknown, send: SendEvent): Promise<EventAnswer> {
  try {
    const { event, value, taskId } = parseInput(eventSchema(), body, 'body')
    return { status: 200, body: { taskIds: await send(event, value, taskId) } }
  } catch (error) {
    if (!(error instanceof AgentTasksError)) throw error
    const { message, code } = error
    if (!(error instanceof InvalidInputError)) {
      return { status: code === 'EVENTS_FULL' ? 409 : 503, body: { error: message, code } }
    }
    return { status: 400, body: { error: message, code, field: error.field.replace(/^(body|target)\./, '') } }
  }
}

/** Creates the error for a task that the caller does not have. The error is the same for a task of another caller, so that ids cannot be guessed. */
export const unknownTask = (taskId: string): InvalidInputError =>
  new InvalidInputError('target.taskId', taskId, 'the id of a task that has not ended')
