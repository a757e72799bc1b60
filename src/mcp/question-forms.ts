/** Converts the questions of tasks to forms of MCP elicitation, and checks the answers. */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { TaskAnswer, TaskQuestion } from '../../machines/records.js'
import { describeFailure } from '../protocol/outcomes.js'
import { parseInput } from '../protocol/parse.js'
import { answerSchemaOf, taskAnswerSchema } from '../protocol/task-questions.js'

/** A form elicitation request (MCP, "Elicitation"). */
export type WireInputRequest = {
  readonly method: 'elicitation/create'
  readonly params: {
    readonly mode: 'form'
    readonly message: string
    readonly requestedSchema: Readonly<Record<string, unknown>>
  }
}

export function formOf({ message, schema }: TaskQuestion): WireInputRequest {
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema: schema } }
}

const FORM_TYPES = ['string', 'number', 'integer', 'boolean']

/** Whether a form can show a question. A form has only fields for texts, numbers and booleans, and no nested ones (MCP, "Elicitation"). */
export function isForm({ schema }: TaskQuestion): boolean {
  const { properties } = schema
  if (typeof properties !== 'object' || properties === null) return false
  return Object.values(properties).every((field: { readonly type?: unknown } | undefined) =>
    FORM_TYPES.includes(field?.type as string),
  )
}

/** A form that is declined sooner than this was not read by a person, in ms. On a busy machine a client that declines by itself needs more than 50 ms. */
const AT_ONCE_MS = 500

interface FormEnd {
  /** The time since the client was asked, in ms. */
  readonly afterMs: number
  /** Called with a text for the model when the client has declined the form by itself. */
  readonly onUnread: (note: string) => void
}

/**
 * The answer of a person to a form. Undefined if there is no valid one, so that the question stays open: the form was cancelled, or it was declined at
 * once. Clients without a person answer every form like that, such as `claude -p` with `cancel` and `codex exec` with `decline`.
 */
export function readForm(
  taskId: string,
  question: TaskQuestion,
  response: unknown,
  end: FormEnd,
): TaskAnswer | undefined {
  try {
    const answer = answerTo(question, response)
    if (answer.action === 'cancel') return undefined
    if (answer.action !== 'decline' || end.afterMs >= AT_ONCE_MS) return answer
  } catch {
    return undefined
  }
  end.onUnread(
    `The client declined the form of question ${question.id} of task ${taskId} at once, so no person has seen it. The question is still open.`,
  )
  return undefined
}

/** Whether a client shows forms. An empty declaration of elicitation means that it does. */
export function showsForms(elicitation: object | undefined): boolean {
  return elicitation !== undefined && ('form' in elicitation || Object.keys(elicitation).length === 0)
}

/** @throws PROTOCOL_ERROR -32602 when the answer does not match the schema of its question; the question stays open */
export function answerTo({ id, schema }: TaskQuestion, response: unknown): TaskAnswer {
  const name = `inputResponses.${id}`
  try {
    const answer = parseInput(taskAnswerSchema().strip(), response, name) as TaskAnswer
    if (answer.action === 'accept') parseInput(answerSchemaOf(schema), answer.content ?? {}, `${name}.content`)
    return answer
  } catch (error) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, describeFailure(error))
  }
}
