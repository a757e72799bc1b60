/** Asks whether to cancel a task, and why. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ActionDone, CancelRequest } from '../../wire.js'
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly taskKey: string
  readonly title: string
  readonly onClose: () => void
}

export function CancelDialog({ taskKey, title, onClose }: Props) {
  const { api } = usePage()
  const dialog = useRef<HTMLDialogElement>(null)
  const reason = useSignal('')
  const cancelling = useAction()
  const { isBusy, error } = cancelling.state.value
  useEffect(() => dialog.current?.showModal(), [])
  const cancel = async (): Promise<void> => {
    const why = reason.value.trim()
    const body: CancelRequest = why === '' ? {} : { reason: why }
    if (await cancelling.run(() => api.post<ActionDone>(`${pathOf(taskKey)}/cancel`, body))) dialog.current?.close()
  }
  return (
    <dialog ref={dialog} aria-labelledby="cancel-heading" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void cancel()
        }}
      >
        <h2 id="cancel-heading">Cancel this task?</h2>
        <p class="task-title">{visible(title)}</p>
        <label for="cancel-reason">Reason (may be empty)</label>
        <textarea
          id="cancel-reason"
          rows={3}
          maxLength={1000}
          value={reason.value}
          onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
        />
        {error !== undefined && (
          <p class="problem" role="alert">
            {visible(error)}
          </p>
        )}
        <div class="actions">
          <button type="submit" class="danger" disabled={isBusy}>
            Cancel the task
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Let it run
          </button>
        </div>
      </form>
    </dialog>
  )
}
