/** The fields of a form made from a JSON Schema. */
import type { Entries, FieldErrors } from './form-content.js'
import type { FormField } from './form-fields.js'
import { SchemaField } from './schema-field.js'

interface Props {
  readonly id: string
  readonly fields: readonly FormField[]
  readonly entries: Entries
  readonly errors: FieldErrors
  readonly onEntries: (entries: Entries) => void
}

export function SchemaFields({ id, fields, entries, errors, onEntries }: Props) {
  return (
    <>
      {fields.map((one) => (
        <SchemaField
          key={one.name}
          id={`${id}-${one.name}`}
          field={one}
          entry={entries[one.name] ?? one.initial}
          error={errors[one.name]}
          onEntry={(entry) => onEntries({ ...entries, [one.name]: entry })}
        />
      ))}
    </>
  )
}
