/** A field of a form, with its label, description and error. */
import { visible } from '../text/visible.js'
import { FieldInput } from './field-input.js'
import type { FieldProps } from './field-props.js'

export function SchemaField(props: FieldProps) {
  const { id, field, error } = props
  const { label, description, isRequired, type } = field
  const isTicked = type === 'boolean' && isRequired
  return (
    <div class={isTicked ? 'field ticked' : 'field'}>
      <label for={id}>
        {visible(label)}
        {!isRequired && <span class="hint"> (optional)</span>}
        {type === 'json' && <span class="hint"> JSON</span>}
      </label>
      {description !== undefined && (
        <p id={`${id}-help`} class="hint">
          {visible(description)}
        </p>
      )}
      <FieldInput {...props} />
      {error !== undefined && (
        <p id={`${id}-error`} class="problem" role="alert">
          {visible(error)}
        </p>
      )}
    </div>
  )
}
