/** Submits a command to an instance, with a form made from the tool's schema. */
import { useSignal } from '@preact/signals'
import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import type { ActionDone, PageInstance, SubmitRequest } from '../../wire.js'
import { addressOf, encoded } from '../addresses.js'
import { goTo } from '../current-address.js'
import { fieldsOf } from '../forms/form-fields.js'
import { SchemaForm } from '../forms/schema-form.js'
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'

interface Props {
  readonly instance: PageInstance
  readonly onClose: () => void
}

export function SubmitForm({ instance, onClose }: Props) {
  const { api } = usePage()
  const { id, tools } = instance
  const selectId = useId()
  const select = useRef<HTMLSelectElement>(null)
  const chosen = useSignal(tools[0]?.name ?? '')
  const tool = tools.find(({ name }) => name === chosen.value)
  const fields = useMemo(() => fieldsOf(tool?.inputSchema ?? { type: 'object' }), [tool?.inputSchema])
  const submitting = useAction()
  useEffect(() => select.current?.focus(), [])
  const submit = (args: Readonly<Record<string, unknown>>): Promise<boolean> =>
    submitting.run(async () => {
      const request: SubmitRequest = { commands: [{ tool: chosen.value, args }] }
      const { key } = await api.post<ActionDone>(`/api/instances/${encoded(id)}/submit`, request)
      if (key !== undefined) goTo(addressOf('task', key))
    })
  return (
    <div class="submit-form" role="group" aria-label="Submit a command">
      <div class="field">
        <label for={selectId}>Tool</label>
        <select
          ref={select}
          id={selectId}
          value={chosen.value}
          onChange={({ currentTarget }) => (chosen.value = currentTarget.value)}
        >
          {tools.map(({ name }) => (
            <option key={name} value={name}>
              {visible(name)}
            </option>
          ))}
        </select>
        {tool?.description !== undefined && <p class="hint">{visible(tool.description)}</p>}
      </div>
      <SchemaForm
        key={chosen.value}
        fields={fields}
        action={submitting}
        errorPrefix="commands.0.args."
        submitLabel="Submit"
        onSubmit={(args) => void submit(args)}
      >
        <button type="button" onClick={onClose}>
          Close
        </button>
      </SchemaForm>
    </div>
  )
}
