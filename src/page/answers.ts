/** The answers of actions, and what an error becomes. */
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { lazily } from '../protocol/lazily.js'
import { strictObject } from '../protocol/strict-object.js'
import type { Again } from './plan-again.js'
import type { ActionDone, ActionError } from './wire.js'

/** The status and the body of an answer. */
export interface Answer {
  readonly status: 200 | 400 | 404 | 409 | 503
  readonly body: ActionDone | ActionError
}

/** The body of an action that takes no fields. */
export const nothingSchema = lazily(() => strictObject({}))

export const done = (more: ActionDone = {}): Answer => ({ status: 200, body: more })
export const conflict = (code: string, error: string): Answer => ({ status: 409, body: { error, code } })

export const notStored = (error: string): Answer => ({ status: 503, body: { error, code: 'NOT_STORED' } })

export const madeTask = (made: Again): Answer =>
  'key' in made ? done({ key: made.key }) : conflict(made.code, made.error)

/** The answer for an error of an action; undefined for an error that the request did not cause. */
export function refusalOf(error: unknown): Answer | undefined {
  if (error instanceof InvalidInputError) {
    return { status: 400, body: { error: error.message, code: error.code, field: fieldOf(error) } }
  }
  if (error instanceof AgentTasksError) return conflict(error.code, error.message)
  return undefined
}

/** The path of the wrong field in its request: `answer.content.color` is `content.color`, and `body.commands[0]` is `commands.0`. */
const fieldOf = ({ field }: InvalidInputError): string => field.replace(/^[^.[]+\.?/, '').replace(/\[(\d+)\]/g, '.$1')
