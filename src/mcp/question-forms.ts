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

/** Whether a client shows forms. An empty declaration of elicitation means that it does. */
export function showsForms(elicitation: object | undefined): boolean {
  return elicitation !== undefined && ('form' in elicitation || Object.keys(elicitation).length === 0)
}

/** @throws ProtocolError -32602 when the answer does not match the schema of its question; the question stays open */
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
