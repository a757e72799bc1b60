/** Derives the fields of a form from a JSON Schema. */

type Schema = Readonly<Record<string, unknown>>

/** The text formats for which browsers have their own input types. */
export type TextFormat = 'email' | 'url' | 'date'

export interface Choice {
  readonly value: unknown
  readonly label: string
}

interface FieldBase {
  readonly name: string
  readonly label: string
  readonly description?: string
  readonly isRequired: boolean
  readonly initial: string
}

/** A field of a form. Each entry is a text. The type `json` is for values that the other types cannot express. */
export type FormField =
  | (FieldBase & { readonly type: 'text'; readonly isLong: boolean; readonly format?: TextFormat })
  | (FieldBase & { readonly type: 'number' | 'integer'; readonly minimum?: number; readonly maximum?: number })
  | (FieldBase & { readonly type: 'boolean' })
  /** The entry is the index of the choice. */
  | (FieldBase & { readonly type: 'choice'; readonly choices: readonly Choice[] })
  | (FieldBase & { readonly type: 'json' })

/** The name of the single field that stands for the whole value, if the schema names no properties. */
export const WHOLE = ''

export function fieldsOf(schema: Schema): readonly FormField[] {
  const { properties } = schema
  if (!isObject(properties) || (Object.keys(properties).length === 0 && takesOthers(schema))) {
    if (schema['type'] === 'object' && !takesOthers(schema)) return []
    return [{ type: 'json', name: WHOLE, label: 'Content', isRequired: true, initial: '{}' }]
  }
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(properties).map(([name, property]) =>
    fieldOf(name, isObject(property) ? property : {}, required.includes(name)),
  )
}

/** Whether the schema allows properties that it does not name. */
const takesOthers = ({ additionalProperties = false }: Schema): boolean => additionalProperties !== false

function fieldOf(name: string, schema: Schema, isRequired: boolean): FormField {
  const { title, description, default: preset, type } = schema
  const base = {
    name,
    label: typeof title === 'string' && title !== '' ? title : name,
    ...(typeof description === 'string' && { description }),
    isRequired,
  }
  const choices = choicesOf(schema)
  if (choices) {
    const chosen = choices.findIndex(({ value }) => value === preset)
    return { ...base, type: 'choice', choices, initial: chosen < 0 ? '' : String(chosen) }
  }
  const initial = preset === undefined ? '' : typeof preset === 'string' ? preset : JSON.stringify(preset)
  switch (type) {
    case 'string':
      return { ...base, type: 'text', isLong: isLong(schema), initial, ...formatOf(schema) }
    case 'number':
    case 'integer':
      return { ...base, type, initial, ...limitsOf(schema) }
    case 'boolean':
      // For a required field, a checkbox that is not ticked means `false`.
      return { ...base, type: 'boolean', initial: initial === '' && isRequired ? 'false' : initial }
    default:
      return { ...base, type: 'json', initial: preset === undefined ? '' : JSON.stringify(preset, null, 2) }
  }
}

function choicesOf({ enum: values, enumNames, oneOf, anyOf }: Schema): readonly Choice[] | undefined {
  if (Array.isArray(values)) {
    const names: readonly unknown[] = Array.isArray(enumNames) ? enumNames : []
    return values.map((value: unknown, index) => ({ value, label: labelOf(value, names[index]) }))
  }
  const options: unknown = oneOf ?? anyOf
  if (!Array.isArray(options) || !options.every((option) => isObject(option) && 'const' in option)) return undefined
  return (options as Schema[]).map(({ const: value, title }) => ({ value, label: labelOf(value, title) }))
}

function labelOf(value: unknown, title: unknown): string {
  if (typeof title === 'string' && title !== '') return title
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const FORMATS: Readonly<Record<string, TextFormat>> = { email: 'email', uri: 'url', date: 'date' }

function formatOf({ format }: Schema): { format?: TextFormat } {
  const known = typeof format === 'string' ? FORMATS[format] : undefined
  return known === undefined ? {} : { format: known }
}

function limitsOf({ minimum, maximum }: Schema): { minimum?: number; maximum?: number } {
  return { ...(typeof minimum === 'number' && { minimum }), ...(typeof maximum === 'number' && { maximum }) }
}

function isLong({ maxLength, format }: Schema): boolean {
  return format === undefined && typeof maxLength === 'number' && maxLength > 200
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
