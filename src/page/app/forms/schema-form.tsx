/** A form made from a JSON Schema. Each error is shown at its field. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import { onFrame } from '../browser-clock.js'
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import type { Action } from '../use-action.js'
import { contentOf, fieldOfPath, type Entries, type FieldErrors } from './form-content.js'
import type { FormField } from './form-fields.js'
import { SchemaFields } from './schema-fields.js'

interface Props {
  readonly fields: readonly FormField[]
  readonly action: Action
  /** The prefix that server errors have before the name of a field. */
  readonly errorPrefix: string
  readonly submitLabel: string
  readonly onSubmit: (content: Readonly<Record<string, unknown>>) => void
  readonly children?: ComponentChildren
}

export function SchemaForm({ fields, action, errorPrefix, submitLabel, onSubmit, children }: Props) {
  const { connection } = usePage()
  const form = useRef<HTMLFormElement>(null)
  const id = useId()
  const entries = useSignal<Entries>({})
  const own = useSignal<FieldErrors>({})
  const { isBusy, error, field } = action.state.value
  const path = field?.startsWith(errorPrefix) === true ? field.slice(errorPrefix.length) : field
  const named = path === undefined ? undefined : fieldOfPath(path, fields)
  const errors = named === undefined || error === undefined ? own.value : { ...own.value, [named]: error }
  const submit = (event: Event): void => {
    event.preventDefault()
    const result = contentOf(fields, entries.value)
    own.value = result.errors ?? {}
    if (result.content) onSubmit(result.content)
    else onFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
  }
  return (
    <form ref={form} class="schema-form" onSubmit={submit} noValidate>
      <SchemaFields
        id={id}
        fields={fields}
        errors={errors}
        entries={entries.value}
        onEntries={(changed) => (entries.value = changed)}
      />
      {error !== undefined && named === undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isBusy} disabled={connection.value.state !== 'live'}>
          {submitLabel}
        </button>
        {children}
      </div>
    </form>
  )
}
