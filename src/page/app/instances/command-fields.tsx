/** The fields of one command of a new command task: the tool and its arguments. */
import type { PageInstance } from '../../wire.js'
import type { FieldErrors } from '../forms/form-content.js'
import type { FormField } from '../forms/form-fields.js'
import { SchemaFields } from '../forms/schema-fields.js'
import { visible } from '../text/visible.js'
import type { Draft } from './drafts.js'

interface Props {
  readonly id: string
  readonly draft: Draft
  readonly tools: PageInstance['tools']
  readonly fields: readonly FormField[]
  readonly errors: FieldErrors
  readonly error: string | undefined
  readonly onChange: (change: Partial<Omit<Draft, 'id'>>) => void
}

export function CommandFields({ id, draft, tools, fields, errors, error, onChange }: Props) {
  const toolId = `${id}-tool`
  const description = tools.find(({ name }) => name === draft.tool)?.description
  return (
    <>
      <div class="field">
        <label for={toolId}>Tool</label>
        <select
          id={toolId}
          value={draft.tool}
          aria-invalid={error !== undefined}
          aria-describedby={error === undefined ? undefined : `${toolId}-error`}
          onChange={({ currentTarget }) => onChange({ tool: currentTarget.value, entries: {} })}
        >
          {tools.map(({ name }) => (
            <option key={name} value={name}>
              {visible(name)}
            </option>
          ))}
        </select>
        {description !== undefined && <p class="hint">{visible(description)}</p>}
        {error !== undefined && (
          <p id={`${toolId}-error`} class="problem" role="alert">
            {visible(error)}
          </p>
        )}
      </div>
      <SchemaFields
        key={draft.tool}
        id={id}
        fields={fields}
        entries={draft.entries}
        errors={errors}
        onEntries={(entries) => onChange({ entries })}
      />
    </>
  )
}
