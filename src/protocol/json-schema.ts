/** Converts the zod schema of a tool to JSON Schema. */
import { z } from 'zod'

type JsonSchema = Readonly<Record<string, unknown>>

/** Never throws. A part that JSON Schema cannot express allows any value. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  return copyOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))
}

/**
 * Returns the JSON Schema (draft 2020-12) for a model. Keywords are left out that providers reject (`propertyNames`), that mean nothing to a
 * model (a bound of 2^53-1), or that only cost tokens.
 */
export function modelSchemaOf(schema: z.ZodType): JsonSchema {
  return schemaFor(schema, [])
}

/** Keywords that the short schema omits, because the tool checks them itself. A model seldom violates them, and the error names the expected value. */
const CHECKED = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum', 'default'] as const

/** Returns the shortest schema. A client sends its list of tools to the model with every message, so each byte counts. */
export function shortSchemaOf(schema: z.ZodType): JsonSchema {
  return schemaFor(schema, CHECKED)
}

function schemaFor(schema: z.ZodType, dropped: typeof CHECKED | readonly never[]): JsonSchema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      if (jsonSchema.description === '') delete jsonSchema.description
      if (isAnyString(jsonSchema.propertyNames)) delete jsonSchema.propertyNames
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      for (const keyword of dropped) Reflect.deleteProperty(jsonSchema, keyword)
      if (dropped.length > 0 && isAnything(jsonSchema.additionalProperties)) delete jsonSchema.additionalProperties
    },
  })
  return copyOf(json)
}

/** zod attaches a hidden reference to its own schema. The copy as JSON does not have it. */
const copyOf = (json: object): JsonSchema => JSON.parse(JSON.stringify(json)) as JsonSchema

const isAnything = (schema: unknown): boolean => JSON.stringify(schema) === '{}'

function isAnyString(schema: unknown): boolean {
  return JSON.stringify(schema) === '{"type":"string"}'
}
