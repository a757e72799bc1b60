/** Sends a message to a run that reads messages. */
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import type { ActionDone, MessageRequest } from '../../wire.js'
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { pathOf } from './use-task-detail.js'

export function MessageForm({ taskKey }: { readonly taskKey: string }) {
  const { api, connection } = usePage()
  const id = useId()
  const message = useSignal('')
  const isSent = useSignal(false)
  const sending = useAction()
  const { isBusy, error } = sending.state.value
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (message.value === '') return
    const request: MessageRequest = { message: message.value }
    isSent.value = await sending.run(() => api.post<ActionDone>(`${pathOf(taskKey)}/message`, request))
    if (isSent.value) message.value = ''
  }
  return (
    <details class="message-form">
      <summary>Send a message</summary>
      <form class="schema-form" onSubmit={(event) => void send(event)}>
        <div class="field">
          <label for={id}>Message to the run</label>
          <textarea
            id={id}
            rows={3}
            value={message.value}
            onInput={({ currentTarget }) => {
              message.value = currentTarget.value
              isSent.value = false
            }}
          />
        </div>
        <div class="actions">
          <button type="submit" aria-disabled={isBusy} disabled={connection.value.state !== 'live'}>
            Send
          </button>
          <span role="status">{isSent.value && 'Sent'}</span>
        </div>
        {error !== undefined && (
          <p class="problem" role="alert">
            {visible(error)}
          </p>
        )}
      </form>
    </details>
  )
}
