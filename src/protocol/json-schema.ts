/** A tool's zod schema as the JSON Schema that is told to others. */
import { z } from 'zod'

/** Never throws: what JSON Schema has no word for becomes a schema that allows anything. */
export function jsonSchemaOf(schema: z.ZodType): Readonly<Record<string, unknown>> {
  // The result carries a hidden reference to the schema; a copy is plain data.
  return JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))) as Record<
    string,
    unknown
  >
}
