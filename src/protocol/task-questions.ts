/** What a run may ask, and what may be answered: the shapes of MCP's form elicitation. */
import { z } from 'zod'
import { lazily } from './lazily.js'
import { toPlainData } from './plain-data.js'

/** The longest question, in characters. */
const MAX_MESSAGE_CHARS = 20_000

/** The answer to a question that does not say: one text, called `answer`. */
const TEXT_ANSWER: Readonly<Record<string, unknown>> = Object.freeze({
  type: 'object',
  properties: Object.freeze({ answer: Object.freeze({ type: 'string', title: 'Answer' }) }),
  required: Object.freeze(['answer']),
})

/** What is kept is what is checked: an object may say something else of itself when it is copied. */
const objectSchema = lazily(() =>
  z
    .record(z.string(), z.unknown())
    .transform((schema) => toPlainData(schema) as Readonly<Record<string, unknown>>)
    .refine((schema) => schema['type'] === 'object', "a JSON Schema of type 'object'")
    .refine(isReadable, 'a JSON Schema that can be read'),
)

const message = lazily(() => z.string().min(1).max(MAX_MESSAGE_CHARS))

/** A question in words alone is answered in words. */
export const taskQuestionSchema = lazily(() =>
  z.union([
    message().transform((text) => ({ message: text, schema: TEXT_ANSWER })),
    z.strictObject({ message: message(), schema: objectSchema().default(TEXT_ANSWER) }),
  ]),
)

/**
 * What `ask` takes: words, or `{ message, schema? }` with the JSON Schema of an object whose properties are text, numbers,
 * booleans or choices (MCP: `requestedSchema`). Without a schema the answer is `{ answer: string }`.
 * @useDeclaredType
 */
export type TaskQuestionInput = z.input<ReturnType<typeof taskQuestionSchema>>

/** What `answerTask` takes. */
export const taskAnswerSchema = lazily(() =>
  z.strictObject({
    action: z.enum(['accept', 'decline', 'cancel']),
    content: z
      .record(z.string(), z.unknown())
      .transform((content) => toPlainData(content) as Readonly<Record<string, unknown>>)
      .optional(),
  }),
)

/** Checks the content of an answer by the schema of its question, which can be read. */
export const answerSchemaOf = (schema: Readonly<Record<string, unknown>>): z.ZodType => z.fromJSONSchema(schema)

function isReadable(schema: Readonly<Record<string, unknown>>): boolean {
  try {
    answerSchemaOf(schema)
    return true
  } catch {
    return false
  }
}
