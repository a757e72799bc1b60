/** Questions that a run asks, and their answers, in the format of MCP's form elicitation. */
import { z } from 'zod'
import { jsonBytes } from '../data/json-size.js'
import { lazily } from './lazily.js'
import { toPlainData } from '../data/plain-data.js'
import { strictObject } from './strict-object.js'

/**
 * Refused because regular expressions of JavaScript backtrack: one of ten characters can take hours for an answer of fifty characters, and
 * blocks the process meanwhile. Forms of MCP have no patterns either (ADR 27 in docs/adr).
 */
const PATTERN_KEYWORDS = ['pattern', 'patternProperties', 'propertyNames']

/** Refused because a few references to each other can describe millions of schemas, or infinitely many. Forms of MCP have none. */
const REFERENCE_KEYWORDS = ['$ref', '$dynamicRef', '$recursiveRef']

const REFUSED_KEYWORDS = [...PATTERN_KEYWORDS, ...REFERENCE_KEYWORDS]
const VALUE_KEYWORDS = ['const', 'enum', 'default', 'examples']
const NAMED_SCHEMAS = ['properties', '$defs', 'definitions', 'dependentSchemas']

/** The maximum length of a question, in characters. */
const MAX_MESSAGE_CHARS = 20_000

/** The maximum size of the schema of an answer, in bytes of JSON. */
const MAX_SCHEMA_BYTES = 100_000

/** The schema of an answer when the question has none: an object with one text, `answer`. */
const TEXT_ANSWER: Readonly<Record<string, unknown>> = Object.freeze({
  type: 'object',
  properties: Object.freeze({ answer: Object.freeze({ type: 'string', title: 'Answer' }) }),
  required: Object.freeze(['answer']),
})

/** The schema is copied before it is checked, because a getter could return another value when it is read again. */
const objectSchema = lazily(() =>
  z
    .record(z.string(), z.unknown())
    .transform((schema) => toPlainData(schema) as Readonly<Record<string, unknown>>)
    // The size is checked first. Each later check reads a part that is used in several places once for each of them.
    .refine((schema) => jsonBytes(schema, MAX_SCHEMA_BYTES) <= MAX_SCHEMA_BYTES, {
      message: `a JSON Schema of at most ${MAX_SCHEMA_BYTES} bytes`,
      abort: true,
    })
    .refine((schema) => schema['type'] === 'object', "a JSON Schema of type 'object'")
    .refine(isReadable, 'a JSON Schema that can be read'),
)

/** The maximum number of choices. MAX_CHOICE_CHARS is the maximum length of one, in characters. */
const MAX_CHOICES = 100
const MAX_CHOICE_CHARS = 500

/** Converts a list of choices to the schema of an answer. */
const choicesSchema = lazily(() =>
  z
    .array(z.string().min(1).max(MAX_CHOICE_CHARS))
    .min(1)
    .max(MAX_CHOICES)
    .refine((choices) => new Set(choices).size === choices.length, 'choices that differ')
    .transform((choices) => ({
      ...TEXT_ANSWER,
      properties: { answer: { type: 'string', title: 'Answer', enum: [...choices] } },
    })),
)

const message = lazily(() => z.string().min(1).max(MAX_MESSAGE_CHARS))

/** A question without a schema is answered with text. */
export const taskQuestionSchema = lazily(() =>
  z
    .union([
      message().transform((text) => ({ message: text, schema: TEXT_ANSWER })),
      strictObject({
        message: message(),
        schema: objectSchema().optional(),
        choices: choicesSchema().readonly().optional(),
      })
        .refine(({ schema, choices }) => schema === undefined || choices === undefined, {
          path: ['choices'],
          message: 'no choices next to a schema, which can list them',
        })
        .transform(({ message: text, schema, choices }) => ({
          message: text,
          schema: choices ?? schema ?? TEXT_ANSWER,
        })),
    ])
    .refine(({ schema }) => !hasRefused(schema), {
      path: ['schema'],
      message: `a JSON Schema without ${REFUSED_KEYWORDS.join(', ')}: describe the format, and check the answer in the run`,
    }),
)

/**
 * The parameter of `ask`. Without a schema the answer is `{ answer: string }`. It is one of
 * - a text;
 * - `{ message, schema? }` with the JSON Schema of an object whose properties are strings, numbers, booleans or enums (MCP, "Elicitation":
 * `requestedSchema`). Regular expressions and references are refused;
 * - `{ message, choices }` with 1 to 100 texts of at most 500 characters.
 * @useDeclaredType
 */
export type TaskQuestionInput = z.input<ReturnType<typeof taskQuestionSchema>>

/** The answer of `answerTask`. */
export const taskAnswerSchema = lazily(() =>
  strictObject({
    action: z.enum(['accept', 'decline', 'cancel']),
    content: z
      .record(z.string(), z.unknown())
      .transform((content) => toPlainData(content) as Readonly<Record<string, unknown>>)
      .optional(),
  }),
)

/** Returns a validator for the content of an answer. It does not throw, because a question with an unreadable schema is refused earlier. */
export const answerSchemaOf = (schema: Readonly<Record<string, unknown>>): z.ZodType => z.fromJSONSchema(schema)

/** Whether a schema contains a refused keyword at any depth. The schema is plain data of limited size, so the recursion ends. */
function hasRefused(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  return Object.entries(schema).some(([keyword, value]) => {
    if (REFUSED_KEYWORDS.includes(keyword)) return true
    if (VALUE_KEYWORDS.includes(keyword)) return false
    // The keys of this object are names that the caller chose, not keywords.
    if (NAMED_SCHEMAS.includes(keyword)) return Object.values(Object(value) as object).some(hasRefused)
    return hasRefused(value)
  })
}

function isReadable(schema: Readonly<Record<string, unknown>>): boolean {
  try {
    answerSchemaOf(schema)
    return true
  } catch {
    return false
  }
}
