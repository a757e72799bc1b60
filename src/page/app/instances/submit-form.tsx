/** Submits a command task to an instance. Each command has a form that is made from the schema of its tool. */
import { useSignal } from '@preact/signals'
import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import type { ActionDone, PageInstance } from '../../wire.js'
import { addressOf, encoded } from '../addresses.js'
import { onFrame } from '../browser-clock.js'
import { goTo } from '../current-address.js'
import { fieldOfPath, type FieldErrors } from '../forms/form-content.js'
import { fieldsOf, type FormField } from '../forms/form-fields.js'
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { CommandFields } from './command-fields.js'
import { placeOf, requestOf, withAnother, withChanged, withMoved, type Draft } from './drafts.js'
import { DraftHead } from './draft-head.js'
import { NameField } from './name-field.js'

export function SubmitForm({ instance, onClose }: { readonly instance: PageInstance; readonly onClose: () => void }) {
  const { api, connection } = usePage()
  const { id, tools } = instance
  const formId = useId()
  const form = useRef<HTMLFormElement>(null)
  const firstTool = tools[0]?.name ?? ''
  const name = useSignal('')
  const drafts = useSignal(withAnother([], firstTool))
  const own = useSignal<ReadonlyMap<number, FieldErrors>>(new Map())
  const sent = useRef<readonly Draft[]>([])
  const submitting = useAction()
  const { isBusy, error, field } = submitting.state.value
  const place = error === undefined ? undefined : placeOf(field, sent.current)
  const fieldsOfTool = useMemo(() => fieldReader(tools), [tools])
  const focus = (selector: string): void => onFrameFocus(form.current, selector)
  useEffect(() => form.current?.querySelector('select')?.focus(), [])

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const { request, errors } = requestOf(name.value, drafts.value, fieldsOfTool)
    own.value = errors ?? new Map()
    if (request) {
      sent.current = drafts.value
      const isDone = await submitting.run(async () => {
        const { key } = await api.post<ActionDone>(`/api/instances/${encoded(id)}/submit`, request)
        if (key !== undefined) goTo(addressOf('task', key))
      })
      if (isDone) return
    }
    focus('[aria-invalid=true]')
  }
  const add = (): void => {
    drafts.value = withAnother(drafts.value, firstTool)
    focus('[data-draft]:last-child select')
  }
  const move = (draft: Draft, by: number): void => {
    drafts.value = withMoved(drafts.value, draft.id, by)
    // At an end of the list, one of the two buttons is disabled. The other button then gets the focus.
    const [wanted, other] = by < 0 ? ['up', 'down'] : ['down', 'up']
    const at = `[data-draft="${draft.id}"]`
    focus(`${at} .${wanted}:enabled, ${at}:not(:has(.${wanted}:enabled)) .${other}`)
  }
  const remove = (draft: Draft): void => {
    const at = drafts.value.indexOf(draft)
    drafts.value = drafts.value.filter((one) => one !== draft)
    focus(`[data-draft="${drafts.value[Math.min(at, drafts.value.length - 1)]?.id}"] select`)
  }
  const all = drafts.value
  return (
    <form ref={form} class="submit-form" aria-label="Submit a task" onSubmit={(event) => void submit(event)} noValidate>
      <div class="drafts">
        {all.map((draft, index) => {
          const fields = fieldsOfTool(draft.tool)
          const isMeant = place?.type === 'command' && place.id === draft.id
          const named = isMeant ? fieldOfPath(place.path, fields) : undefined
          return (
            <div key={draft.id} data-draft={draft.id} role="group" aria-label={`Command ${index + 1}`}>
              {all.length > 1 && (
                <DraftHead
                  index={index}
                  count={all.length}
                  onMove={(by) => move(draft, by)}
                  onRemove={() => remove(draft)}
                />
              )}
              <CommandFields
                id={`${formId}-${draft.id}`}
                draft={draft}
                tools={tools}
                fields={fields}
                errors={{
                  ...own.value.get(draft.id),
                  ...(named !== undefined && error !== undefined && { [named]: error }),
                }}
                error={isMeant && named === undefined ? error : undefined}
                onChange={(change) => (drafts.value = withChanged(drafts.value, draft.id, change))}
              />
            </div>
          )
        })}
      </div>
      <p>
        <button
          type="button"
          title="Commands run one after the other. If one fails, the commands after it are not run"
          onClick={add}
        >
          Add a command
        </button>
      </p>
      <NameField
        id={`${formId}-name`}
        name={name.value}
        placeholder={all.map(({ tool }) => tool).join(', ')}
        error={place?.type === 'name' ? error : undefined}
        onName={(to) => (name.value = to)}
      />
      {place?.type === 'all' && error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isBusy} disabled={connection.value.state !== 'live'}>
          Submit
        </button>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </form>
  )
}

function onFrameFocus(form: HTMLFormElement | null, selector: string): void {
  onFrame(() => form?.querySelector<HTMLElement>(selector)?.focus())
}

/** Computes the fields of each tool once, instead of on every rendering. */
function fieldReader(tools: PageInstance['tools']): (tool: string) => readonly FormField[] {
  const known = new Map(tools.map(({ name, inputSchema }) => [name, fieldsOf(inputSchema)]))
  return (tool) => known.get(tool) ?? []
}
