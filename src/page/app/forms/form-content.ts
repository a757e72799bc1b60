/** Converts the entries of a form to content. A form checks only types and limits; the server checks the rest. */
import { WHOLE, type FormField } from './form-fields.js'

export type Entries = Readonly<Record<string, string>>
export type FieldErrors = Readonly<Record<string, string>>

export type FormResult =
  | { readonly content: Readonly<Record<string, unknown>>; readonly errors?: undefined }
  | { readonly content?: undefined; readonly errors: FieldErrors }

/** Converts the entries, or returns their errors. A field with an empty entry is left out of the content. */
export function contentOf(fields: readonly FormField[], entries: Entries): FormResult {
  const content: [string, unknown][] = []
  const errors: [string, string][] = []
  for (const field of fields) {
    const read = readEntry(field, entries[field.name] ?? field.initial)
    if ('error' in read) errors.push([field.name, read.error])
    else if (field.name === WHOLE) content.push(...Object.entries(read.value as Record<string, unknown>))
    else if (read.value !== undefined) content.push([field.name, read.value])
  }
  // Unlike an assignment, `fromEntries` also keeps a property named `__proto__`.
  return errors.length > 0 ? { errors: Object.fromEntries(errors) } : { content: Object.fromEntries(content) }
}

type Read = { readonly value: unknown } | { readonly error: string }

const NEEDED: Read = { error: 'Fill this in.' }

function readEntry(field: FormField, entry: string): Read {
  if (entry.trim() === '') return field.isRequired ? NEEDED : { value: undefined }
  switch (field.type) {
    case 'text':
      return { value: entry }
    case 'number':
    case 'integer':
      return readNumber(entry, field)
    case 'boolean':
      return { value: entry === 'true' }
    case 'choice':
      return { value: field.choices[Number(entry)]?.value }
    case 'json':
      return readJson(entry, field.name === WHOLE)
  }
}

function readNumber(entry: string, field: FormField & { readonly type: 'number' | 'integer' }): Read {
  const value = Number(entry)
  if (!Number.isFinite(value)) return { error: `A number is needed, not ${entry}.` }
  if (field.type === 'integer' && !Number.isInteger(value)) return { error: `A whole number is needed, not ${entry}.` }
  if (field.minimum !== undefined && value < field.minimum) {
    return { error: `A number of at least ${field.minimum} is needed.` }
  }
  if (field.maximum !== undefined && value > field.maximum) {
    return { error: `A number of at most ${field.maximum} is needed.` }
  }
  return { value }
}

function readJson(entry: string, needsObject: boolean): Read {
  try {
    const value: unknown = JSON.parse(entry)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return needsObject && !isObject ? { error: 'An object is needed, such as {"name": "value"}.' } : { value }
  } catch (error) {
    return { error: `JSON is needed: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Returns the name of the field that a server error is about; undefined if the error is about no field of this form. */
export function fieldOfPath(path: string, fields: readonly FormField[]): string | undefined {
  return fields.find(({ name }) => name !== WHOLE && (path === name || path.startsWith(`${name}.`)))?.name
}
