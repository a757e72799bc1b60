/** Changes the schemas of background tools. Supports zod 4, JSON Schema, and `jsonSchema()` of the AI SDK. */
import { z } from 'zod'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InvalidInputError } from '../../errors.js'
import { modelSchemaOf } from '../../protocol/json-schema.js'
import { lazily } from '../../protocol/lazily.js'

type Json = Readonly<Record<string, unknown>>

/** A schema of the AI SDK. A plain JSON Schema has neither of these fields. */
interface AiSdkSchema {
  readonly jsonSchema?: Json
  readonly validate?: (value: unknown) => object | Promise<object>
}

const PARAMETER = 'run_in_background'
const TEXT =
  'true: the tool runs in the background, and the call returns at once. false (default): the call waits for the result.'

/**
 * Reads `run_in_background`, and returns it with the rest of the input.
 * @throws INVALID_INPUT when the parameter is not a boolean
 */
export function readParameter(given: unknown): { readonly input: unknown; readonly isBackground: boolean } {
  if (typeof given !== 'object' || given === null) return { input: given, isBackground: false }
  const { [PARAMETER]: chosen, ...input } = given as Json
  if (typeof (chosen ?? false) === 'boolean') return { input, isBackground: chosen === true }
  throw new InvalidInputError(`params.${PARAMETER}`, chosen, 'true or false')
}

/**
 * Adds the parameter `run_in_background` to an input schema.
 * @param isStrict whether the model must set every parameter; `run_in_background` is then required, and may be null
 * @param field the name of the schema in errors
 * @throws INVALID_INPUT for a schema that is not one of an object, or that already has the parameter
 */
export function withParameter(given: unknown, isStrict: boolean, field: string): unknown {
  // The AI SDK accepts a function that creates the schema.
  const schema = Object(typeof given === 'function' ? (given as () => unknown)() : given) as AiSdkSchema | z.ZodObject
  const isZod = schema instanceof z.ZodObject
  const { jsonSchema = schema, validate } = isZod ? {} : schema
  const json = jsonSchema as Json & { readonly properties?: Json; readonly required?: readonly string[] }
  const fields = isZod ? schema.shape : json['type'] === 'object' && (json.properties ?? {})
  if (fields === false) throw new InvalidInputError(field, given, 'an object of zod 4, or the JSON Schema of an object')
  if (Object.hasOwn(fields, PARAMETER)) {
    throw new InvalidInputError(
      `${field}.${PARAMETER}`,
      fields[PARAMETER],
      'no parameter with this name, because background() adds it',
    )
  }
  const added = (isStrict ? z.boolean().nullable() : z.boolean().optional()).describe(TEXT)
  if (isZod) return schema.safeExtend({ [PARAMETER]: added })
  const required = isStrict && { required: [...(json.required ?? []), PARAMETER] }
  const changed = { ...json, properties: { ...fields, [PARAMETER]: modelSchemaOf(added) }, ...required }
  const check = async (value: unknown): Promise<unknown> => {
    const { input, isBackground } = readParameter(value)
    const result = (await validate?.(input)) as { readonly value?: object }
    return 'value' in result ? { ...result, value: { ...result.value, [PARAMETER]: isBackground } } : result
  }
  return json === schema ? changed : { ...schema, jsonSchema: changed, validate: validate && check }
}

export const referenceSchema = lazily(() =>
  z.object({
    task_id: z.string().describe('The id of the task.'),
    status: z.string().describe('The status of the task when the call returned.'),
    how_to_wait: z.string().describe('How the result will arrive.'),
  }),
)

/** Whether an output is a `BackgroundTask`, also after it was stored as JSON. */
export const isReference = (output: unknown): boolean => referenceSchema().safeParse(output).success

/** Returns a schema that accepts an output of the tool or a `BackgroundTask`. */
export function withReference(schema: object): object {
  if (schema instanceof z.ZodType) return z.union([schema, referenceSchema()])
  const { jsonSchema: json = schema as Json, validate } = schema as AiSdkSchema
  // References such as `#/$defs/x` start at the root of a schema, so `$defs` moves to the new root.
  const { $schema, $defs, ...own } = json
  const union = { ...omitUndefined({ $schema, $defs }), type: 'object', anyOf: [own, modelSchemaOf(referenceSchema())] }
  const check = validate && ((value: unknown) => (isReference(value) ? { success: true, value } : validate(value)))
  return json === schema ? union : { ...schema, jsonSchema: union, validate: check }
}
