/** Questions of a run and their answers, in the format of MCP's form elicitation. */
import { z } from 'zod'
import { jsonBytes } from '../json/json-size.js'
import { lazily } from './lazily.js'
import { toPlainData } from '../json/plain-data.js'
import { strictObject } from './strict-object.js'

/**
 * JavaScript's regular expressions backtrack: one of ten characters can take hours for an answer of fifty, and blocks the process. MCP's forms
 * have no patterns either (ADR 27).
 */
const PATTERN_KEYWORDS = ['pattern', 'patternProperties', 'propertyNames']

/** A few references to each other can describe millions of schemas, or infinitely many. MCP's forms have none. */
const REFERENCE_KEYWORDS = ['$ref', '$dynamicRef', '$recursiveRef']

const REFUSED_KEYWORDS = [...PATTERN_KEYWORDS, ...REFERENCE_KEYWORDS]
const VALUE_KEYWORDS = ['const', 'enum', 'default', 'examples']
const NAMED_SCHEMAS = ['properties', '$defs', 'definitions', 'dependentSchemas']

/** The maximum length of a question, in characters. */
const MAX_MESSAGE_CHARS = 20_000

/** The maximum size of an answer's schema, in bytes of JSON. A few shared parts can describe millions of schemas. */
const MAX_SCHEMA_BYTES = 100_000

/** The default schema of an answer: one text, named `answer`. */
const TEXT_ANSWER: Readonly<Record<string, unknown>> = Object.freeze({
  type: 'object',
  properties: Object.freeze({ answer: Object.freeze({ type: 'string', title: 'Answer' }) }),
  required: Object.freeze(['answer']),
})

/** Copied before it is checked, because getters may return another value each time. */
const objectSchema = lazily(() =>
  z
    .record(z.string(), z.unknown())
    .transform((schema) => toPlainData(schema) as Readonly<Record<string, unknown>>)
    // Checked first, because later checks read a shared part once for each of its places.
    .refine((schema) => jsonBytes(schema, MAX_SCHEMA_BYTES) <= MAX_SCHEMA_BYTES, {
      message: `a JSON Schema of at most ${MAX_SCHEMA_BYTES} bytes`,
      abort: true,
    })
    .refine((schema) => schema['type'] === 'object', "a JSON Schema of type 'object'")
    .refine(isReadable, 'a JSON Schema that can be read'),
)

/** The maximum number of choices, and the maximum length of one, in characters. */
const MAX_CHOICES = 100
const MAX_CHOICE_CHARS = 500

/** Choices as the schema of an answer. */
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
 * The parameter of `ask`: text, or `{ message, schema? }` with the JSON Schema of an object whose properties are strings, numbers, booleans
 * or enums (MCP, "Elicitation": `requestedSchema`), without regular expressions and references, or `{ message, choices }` with 1 to 100 texts of at
 * most 500 characters. Without a schema the answer is `{ answer: string }`.
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

/** Validates the content of an answer. The schema of a question is always readable. */
export const answerSchemaOf = (schema: Readonly<Record<string, unknown>>): z.ZodType => z.fromJSONSchema(schema)

/** Whether a schema contains such a keyword at any depth. It is plain data of limited size, so the recursion ends. */
function hasRefused(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  return Object.entries(schema).some(([keyword, value]) => {
    if (REFUSED_KEYWORDS.includes(keyword)) return true
    if (VALUE_KEYWORDS.includes(keyword)) return false
    // The keys of these objects are names, not keywords.
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
