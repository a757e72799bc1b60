/** The texts that ask a model, or a person, the open questions of tasks. */
import type { AsyncTaskInfo, TaskAnswer, TaskQuestion } from '../../machines/records.js'
import { toJsonText } from '../protocol/json-text.js'
import { answerSchemaOf } from '../protocol/task-questions.js'
import { previewText } from './bounded-text.js'
import { fenced } from './fenced.js'
import type { FollowUpCall } from './follow-ups.js'

/** The maximum length of a question in a hint, in characters; a peek shows all of it. */
export const QUESTION_CHARS = 500

/** How to answer a question, in words for a model. */
export function answerHint(taskId: string, question: TaskQuestion, { tool, params }: FollowUpCall): string {
  const call = { task_id: taskId, ...params, question_id: question.id, answer: exampleOf(question) }
  return `Answer with ${tool} ${toJsonText(call, { maxChars: QUESTION_CHARS })}, or "decline": true instead of "answer".`
}

/** A question in a message: what the run asks is fenced. */
export function questionText({ id, subagentName }: AsyncTaskInfo, question: TaskQuestion, call: FollowUpCall): string {
  const title = `Task ${id} (${previewText(subagentName, 100)}) waits for an answer to ${question.id}:`
  return `${fenced(title, questionWords(question))}\n${answerHint(id, question, call)}`
}

/** A question in words, with its choices if it has some. */
export function questionWords(question: TaskQuestion): string {
  const choices = choicesOf(question)
  const text = choices === undefined ? question.message : `${question.message} (${choices.join(', ')})`
  return previewText(text, QUESTION_CHARS)
}

/** The possible answers to a question with one field. */
function choicesOf({ schema }: TaskQuestion): readonly unknown[] | undefined {
  const fields = Object.values((schema['properties'] ?? {}) as Record<string, { readonly enum?: unknown } | undefined>)
  const choices = fields.length === 1 ? fields[0]?.enum : undefined
  return Array.isArray(choices) ? choices : undefined
}

/** What a person wrote, as an answer: JSON where the question takes no text, and the only field otherwise. */
export function writtenAnswer(question: TaskQuestion, text: string): TaskAnswer {
  const [only = 'answer', ...others] = propertiesOf(question)
  const schema = answerSchemaOf(question.schema)
  const contents = [{ [only]: text }, { [only]: parseJson(text) }, parseJson(text)]
  const fitting = contents.find((content) => schema.safeParse(content).success)
  const content = (fitting ?? (others.length === 0 ? { [only]: text } : parseJson(text))) as TaskAnswer['content']
  return { action: 'accept', ...(content !== undefined && { content }) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An example of an answer; plain text is accepted where the schema has one property. */
function exampleOf(question: TaskQuestion): unknown {
  const names = propertiesOf(question)
  return names.length === 1 ? '...' : Object.fromEntries(names.map((name) => [name, '...']))
}

export function propertiesOf({ schema }: TaskQuestion): string[] {
  const { properties } = schema
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
}
