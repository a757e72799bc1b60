/** The JSON Schema of a tool's zod schema. */
import { z } from 'zod'

/** Never throws: what JSON Schema cannot express becomes a schema that allows any value. */
export function jsonSchemaOf(schema: z.ZodType): Readonly<Record<string, unknown>> {
  // The result has a hidden reference to the zod schema; the copy has not.
  return JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))) as Record<
    string,
    unknown
  >
}
