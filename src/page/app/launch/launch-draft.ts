/** The content of the launch form, and the request that is made from it. */
import { omitUndefined } from '../../../data/omit-undefined.js'
import type { LaunchRequest, PageSubagent } from '../../wire.js'
import { contentOf, fieldOfPath, type Entries, type FieldErrors } from '../forms/form-content.js'
import { fieldsOf, type FormField } from '../forms/form-fields.js'

/** The fields of the request whose forms are made from a schema. */
export const PARTS_WITH_FIELDS = ['context', 'options'] as const

export interface LaunchDraft {
  readonly goal: string
  /** Empty for the default owner of the host. */
  readonly owner: string
  readonly context: Entries
  readonly options: Entries
}

export const EMPTY_DRAFT: LaunchDraft = { goal: '', owner: '', context: {}, options: {} }

export interface LaunchErrors {
  readonly goal?: string
  readonly owner?: string
  readonly context: FieldErrors
  readonly options: FieldErrors
  /** An error that belongs to no field. */
  readonly other?: string
}

export const NO_ERRORS: LaunchErrors = { context: {}, options: {} }

/** The field of a subagent without a schema, which accepts any object. */
const ANY_CONTEXT: readonly FormField[] = [
  {
    type: 'json',
    name: 'context',
    label: 'Context',
    description: 'Further data for the subagent, as a JSON object.',
    isRequired: false,
    initial: '',
  },
]

export const contextFields = ({ contextSchema }: PageSubagent): readonly FormField[] =>
  contextSchema === undefined ? ANY_CONTEXT : fieldsOf(contextSchema)

export type Fields = Readonly<Record<(typeof PARTS_WITH_FIELDS)[number], readonly FormField[]>>

type Checked =
  | { readonly request: LaunchRequest; readonly errors?: undefined }
  | { readonly request?: undefined; readonly errors: LaunchErrors }

export function requestOf({ goal, owner, ...entries }: LaunchDraft, fields: Fields): Checked {
  const context = contentOf(fields.context, entries.context)
  const options = contentOf(fields.options, entries.options)
  const errors: LaunchErrors = {
    ...(goal.trim() === '' && { goal: 'Fill this in.' }),
    context: context.errors ?? {},
    options: options.errors ?? {},
  }
  if (context.content === undefined || options.content === undefined || errors.goal !== undefined) return { errors }
  const given = fields.context === ANY_CONTEXT ? context.content['context'] : context.content
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    return { errors: { ...errors, context: { context: 'An object is needed, such as {"name": "value"}.' } } }
  }
  const request = {
    goal,
    ...(owner !== '' && { owner }),
    ...omitUndefined({ context: given as LaunchRequest['context'] }),
    ...(Object.keys(options.content).length > 0 && { options: options.content }),
  }
  return { request }
}

/**
 * Assigns an error of the server to a field of the form.
 * @param path the path of the wrong field in the request
 */
export function errorsOf(error: string, path: string | undefined, fields: Fields): LaunchErrors {
  if (path === 'goal' || path === 'owner') return { ...NO_ERRORS, [path]: error }
  for (const part of PARTS_WITH_FIELDS) {
    if (path !== part && path?.startsWith(`${part}.`) !== true) continue
    const within = fields[part] === ANY_CONTEXT ? 'context' : path.slice(part.length + 1)
    const name = fieldOfPath(within, fields[part])
    if (name !== undefined) return { ...NO_ERRORS, [part]: { [name]: error } }
  }
  return { ...NO_ERRORS, other: error }
}
