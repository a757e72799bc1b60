/** The JSON Schema of a tool's zod schema. */
import { z } from 'zod'

type JsonSchema = Readonly<Record<string, unknown>>

/** Never throws. Schemas that JSON Schema cannot express allow any value. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  return copyOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))
}

/**
 * The JSON Schema (draft 2020-12) for a model, without redundant keywords: several providers reject `propertyNames`, a bound of 2^53-1 means
 * nothing to a model, and every definition costs tokens.
 */
export function modelSchemaOf(schema: z.ZodType): JsonSchema {
  return schemaFor(schema, [])
}

/** Keywords that the tool checks itself. A model seldom violates them, and the error names the expected value. */
const CHECKED = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum', 'default'] as const

/** A schema with the fewest bytes, for a list of tools that is part of every turn of every client. */
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

/** Drops a hidden reference to the zod schema. */
const copyOf = (json: object): JsonSchema => JSON.parse(JSON.stringify(json)) as JsonSchema

const isAnything = (schema: unknown): boolean => JSON.stringify(schema) === '{}'

function isAnyString(schema: unknown): boolean {
  return JSON.stringify(schema) === '{"type":"string"}'
}
