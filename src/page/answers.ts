/** The HTTP responses of actions, and the responses that errors become. */
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { lazily } from '../protocol/lazily.js'
import { strictObject } from '../protocol/strict-object.js'
import type { Again } from './plan-again.js'
import type { ActionDone, ActionError } from './wire.js'

export interface Answer {
  readonly status: 200 | 400 | 404 | 409 | 503
  readonly body: ActionDone | ActionError
}

/** The schema of a request body without fields. */
export const nothingSchema = lazily(() => strictObject({}))

export const done = (more: ActionDone = {}): Answer => ({ status: 200, body: more })
export const conflict = (code: string, error: string): Answer => ({ status: 409, body: { error, code } })

/** The text for an error that the request did not cause. Its details are only in the log. */
export const INTERNAL_ERROR = 'The server of the page had an internal error. Its log has the details.'

export const notStored = (error: string): Answer => ({ status: 503, body: { error, code: 'NOT_STORED' } })

export const madeTask = (made: Again): Answer =>
  'key' in made ? done({ key: made.key }) : conflict(made.code, made.error)

/** Returns the response for an error of an action; undefined if the request did not cause the error. */
export function refusalOf(error: unknown): Answer | undefined {
  if (error instanceof InvalidInputError) {
    return { status: 400, body: { error: error.message, code: error.code, field: fieldOf(error) } }
  }
  if (error instanceof AgentTasksError) return conflict(error.code, error.message)
  return undefined
}

/** Returns the path of the wrong field inside the request: `content.color` for `answer.content.color`, and `commands.0` for `body.commands[0]`. */
const fieldOf = ({ field }: InvalidInputError): string => field.replace(/^[^.[]+\.?/, '').replace(/\[(\d+)\]/g, '.$1')
