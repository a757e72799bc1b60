/** The texts with which open questions of tasks are put to a model or a person. */
import type { AsyncTaskInfo, TaskAnswer, TaskQuestion } from '../../../machines/records.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { toJsonText } from '../../data/json-text.js'
import { answerSchemaOf } from '../../protocol/task-questions.js'
import { previewText } from '../output/bounded-text.js'
import { fenced } from '../../data/fenced.js'
import type { FollowUpCall } from '../output/follow-ups.js'

/** The maximum length of a question in a message, in characters. The tool `check_async_tasks` with the action `peek` shows the whole question. */
const QUESTION_CHARS = 500

export function answerHint(taskId: string, question: TaskQuestion, { tool, params }: FollowUpCall): string {
  const call = { task_id: taskId, ...params, question_id: question.id, answer: exampleOf(question) }
  return `Answer with ${tool} ${toJsonText(call, { maxChars: QUESTION_CHARS })}, or "decline": true instead of "answer".`
}

/** Returns a question for a message. The text of the run is put between fences. */
export function questionText({ id, subagentName }: AsyncTaskInfo, question: TaskQuestion, call: FollowUpCall): string {
  const title = `Task ${id} (${previewText(subagentName, 100)}) waits for an answer to ${question.id}:`
  return `${fenced(title, questionWords(question))}\n${answerHint(id, question, call)}`
}

/** Returns the text of a question, with its choices if it has any. */
export function questionWords(question: TaskQuestion, maxChars = QUESTION_CHARS): string {
  const choices = choicesOf(question)
  const text = choices === undefined ? question.message : `${question.message} (${choices.join(', ')})`
  return previewText(text, maxChars)
}

/** Returns the possible answers to a question with one field, if its schema lists them. */
function choicesOf(question: TaskQuestion): readonly unknown[] | undefined {
  const [only, ...others] = Object.values(fieldsOf(question))
  return others.length === 0 ? valuesOf(only) : undefined
}

type JsonSchema = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the values that a schema allows, if it lists them. */
function valuesOf(schema: unknown): readonly unknown[] | undefined {
  if (!isObject(schema)) return undefined
  if (Array.isArray(schema['enum'])) return schema['enum'] as unknown[]
  if ('const' in schema) return [schema['const']]
  const alternatives = schema['oneOf'] ?? schema['anyOf']
  if (!Array.isArray(alternatives)) return undefined
  const values = alternatives.flatMap((each) => (isObject(each) && 'const' in each ? [each['const']] : []))
  return values.length === alternatives.length ? values : undefined
}

/** The maximum length of the description of an answer, in characters. */
const EXPECTED_CHARS = 1000

export function expectedAnswer(question: TaskQuestion): string {
  const [only, ...others] = Object.values(fieldsOf(question))
  const values = others.length === 0 ? valuesOf(only) : undefined
  if (values !== undefined) {
    return `one of ${previewText(values.map((value) => JSON.stringify(value)).join(', '), EXPECTED_CHARS)}`
  }
  if (others.length === 0 && isObject(only) && only['type'] === 'boolean') return 'true or false'
  const schema = previewText(JSON.stringify(question.schema), EXPECTED_CHARS)
  return `${others.length === 0 ? 'a value, or ' : ''}an object that fits ${schema}`
}

/** Converts a value into an answer. An object contains the values of all fields. Any other value is the value of the only field. */
export function valueAnswer(question: TaskQuestion, value: unknown): TaskAnswer {
  const [only = 'answer'] = propertiesOf(question)
  return { action: 'accept', content: isObject(value) ? value : { [only]: value } }
}

/**
 * Converts the text of a person or model into an answer. The text itself is the value of the only field, if that fits the schema of the question. If
 * not, the text is parsed as JSON.
 */
export function writtenAnswer(question: TaskQuestion, text: string): TaskAnswer {
  const [only = 'answer', ...others] = propertiesOf(question)
  const schema = answerSchemaOf(question.schema)
  const json = parseJson(text)
  const contents = [{ [only]: text }, ...(json === undefined ? [] : [{ [only]: json }, json])]
  const fitting = contents.find((content) => schema.safeParse(content).success)
  const content = (fitting ?? (others.length === 0 ? { [only]: text } : json)) as TaskAnswer['content']
  return { action: 'accept', ...omitUndefined({ content }) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns an example answer: an object with the required fields, or a single value if the schema has one field. */
function exampleOf(question: TaskQuestion): unknown {
  const fields = Object.entries(fieldsOf(question))
  const { required } = question.schema
  const needed = Array.isArray(required) ? fields.filter(([name]) => required.includes(name)) : []
  const example = Object.fromEntries(
    (needed.length > 0 ? needed : fields).map(([name, schema]) => [name, exampleValue(schema)]),
  )
  const [value] = Object.values(example)
  return fields.length === 1 && (typeof value !== 'object' || value === null) ? value : example
}

function exampleValue(schema: unknown): unknown {
  const values = valuesOf(schema)
  if (values !== undefined) return values[0]
  if (!isObject(schema)) return '...'
  const { type, minimum, items } = schema
  switch (Array.isArray(type) ? type[0] : type) {
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return typeof minimum === 'number' ? minimum : 1
    case 'array':
      return [exampleValue(items)]
    case 'object':
      return {}
    default:
      return '...'
  }
}

function fieldsOf({ schema: { properties } }: TaskQuestion): JsonSchema {
  return isObject(properties) ? properties : {}
}

const propertiesOf = (question: TaskQuestion): string[] => Object.keys(fieldsOf(question))
