/** The input element of a field. */
import { visible } from '../text/visible.js'
import type { FieldProps } from './field-props.js'

type Typed = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

export function FieldInput({ id, field, entry, error, onEntry }: FieldProps) {
  const described = [field.description !== undefined && `${id}-help`, error !== undefined && `${id}-error`].filter(
    Boolean,
  )
  const shared = {
    id,
    'aria-invalid': error !== undefined,
    'aria-required': field.isRequired,
    'aria-describedby': described.length > 0 ? described.join(' ') : undefined,
    onInput: ({ currentTarget }: { readonly currentTarget: Typed }): void => onEntry(currentTarget.value),
  }
  switch (field.type) {
    case 'text':
      if (field.isLong || entry.includes('\n')) return <textarea {...shared} rows={4} value={entry} />
      if (field.format === 'date') return <input {...shared} type="date" value={entry} />
      return <input {...shared} type="text" inputMode={field.format ?? 'text'} value={entry} />
    case 'number':
    case 'integer':
      return (
        <input {...shared} type="text" inputMode={field.type === 'integer' ? 'numeric' : 'decimal'} value={entry} />
      )
    case 'json':
      return <textarea {...shared} class="code" rows={4} spellcheck={false} value={entry} />
    case 'choice':
      return (
        <select {...shared} value={entry}>
          {(!field.isRequired || entry === '') && <option value="">—</option>}
          {field.choices.map(({ label }, index) => (
            <option key={index} value={String(index)}>
              {visible(label)}
            </option>
          ))}
        </select>
      )
    case 'boolean':
      if (field.isRequired) {
        const { onInput: _onInput, ...rest } = shared
        return (
          <input
            {...rest}
            type="checkbox"
            checked={entry === 'true'}
            onChange={({ currentTarget }) => onEntry(String(currentTarget.checked))}
          />
        )
      }
      return (
        <select {...shared} value={entry}>
          <option value="">—</option>
          <option value="true">Yes</option>
          <option value="false">No</option>
        </select>
      )
  }
}
