/** The form that launches a task. It has the subagent, the goal, the fields of the subagent's schema, and further options. */
import { useSignal } from '@preact/signals'
import { useId, useMemo, useRef } from 'preact/hooks'
import type { ActionDone, PageSubagent, PageSubagents } from '../../wire.js'
import { addressOf, encoded } from '../addresses.js'
import { onFrame } from '../browser-clock.js'
import { goTo, replaceAddress } from '../current-address.js'
import { fieldsOf } from '../forms/form-fields.js'
import { SchemaFields } from '../forms/schema-fields.js'
import { usePage } from '../page-state.js'
import { isRun } from '../text/owners.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { contextFields, EMPTY_DRAFT, errorsOf, NO_ERRORS, requestOf } from './launch-draft.js'
import { LaunchField } from './launch-field.js'

export function LaunchForm({ list, subagent }: { readonly list: PageSubagents; readonly subagent: PageSubagent }) {
  const { api, connection, view } = usePage()
  const id = useId()
  const form = useRef<HTMLFormElement>(null)
  const draft = useSignal(EMPTY_DRAFT)
  const own = useSignal(NO_ERRORS)
  const launching = useAction()
  const { isBusy, error, field } = launching.state.value
  const { name, description } = subagent
  const fields = useMemo(
    () => ({ context: contextFields(subagent), options: fieldsOf(list.optionsSchema) }),
    [subagent, list],
  )
  const errors = error === undefined ? own.value : errorsOf(error, field, fields)
  const { goal, owner, context, options } = draft.value
  const change = (to: Partial<typeof draft.value>): void => {
    draft.value = { ...draft.value, ...to }
  }
  const owners = [list.owner, ...view.value.owners.map((known) => known.owner)].filter(
    (one, at, all) => !isRun(one) && all.indexOf(one) === at,
  )
  const areOptionsWrong = errors.owner !== undefined || Object.keys(errors.options).length > 0

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const { request, errors: wrong } = requestOf(draft.value, fields)
    own.value = wrong ?? NO_ERRORS
    if (request) {
      const isDone = await launching.run(async () => {
        const { key } = await api.post<ActionDone>(`/api/subagents/${encoded(name)}/launch`, request)
        if (key !== undefined) goTo(addressOf('task', key))
      })
      if (isDone) return
    }
    onFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
  }
  return (
    <form
      ref={form}
      class="schema-form launch-form"
      aria-label="Launch a task"
      onSubmit={(event) => void submit(event)}
      noValidate
    >
      <LaunchField id={`${id}-subagent`} label="Subagent" help={description}>
        {(shared) => (
          <select
            {...shared}
            value={name}
            onChange={({ currentTarget }) => {
              change({ context: {} })
              replaceAddress(addressOf('launch', currentTarget.value))
            }}
          >
            {list.subagents.map((one) => (
              <option key={one.name} value={one.name}>
                {visible(one.name)}
              </option>
            ))}
          </select>
        )}
      </LaunchField>
      <LaunchField id={`${id}-goal`} label="Goal" error={errors.goal}>
        {(shared) => (
          <textarea
            {...shared}
            aria-required
            rows={4}
            value={goal}
            onInput={({ currentTarget }) => change({ goal: currentTarget.value })}
          />
        )}
      </LaunchField>
      <SchemaFields
        key={name}
        id={`${id}-context`}
        fields={fields.context}
        entries={context}
        errors={errors.context}
        onEntries={(entries) => change({ context: entries })}
      />
      <details open={areOptionsWrong || undefined}>
        <summary>More options</summary>
        <div class="schema-form">
          {owners.length > 1 && (
            <LaunchField
              id={`${id}-owner`}
              label="Owner"
              help="The agent that the result is delivered to."
              error={errors.owner}
            >
              {(shared) => (
                <select
                  {...shared}
                  value={owner === '' ? list.owner : owner}
                  onChange={({ currentTarget }) => change({ owner: currentTarget.value })}
                >
                  {owners.map((one) => (
                    <option key={one} value={one}>
                      {visible(one)}
                    </option>
                  ))}
                </select>
              )}
            </LaunchField>
          )}
          <SchemaFields
            id={`${id}-options`}
            fields={fields.options}
            entries={options}
            errors={errors.options}
            onEntries={(entries) => change({ options: entries })}
          />
        </div>
      </details>
      {errors.other !== undefined && (
        <p class="problem" role="alert">
          {visible(errors.other)}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isBusy} disabled={connection.value.state !== 'live'}>
          Launch
        </button>
      </div>
    </form>
  )
}
