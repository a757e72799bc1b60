/** Asks whether to cancel a task, and for the reason. */
import { useSignal } from '@preact/signals'
import type { ActionDone, CancelRequest } from '../../wire.js'
import { usePage } from '../page-state.js'
import { useAction } from '../use-action.js'
import { ConfirmDialog } from './confirm-dialog.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly taskKey: string
  readonly title: string
  readonly onClose: () => void
}

export function CancelDialog({ taskKey, title, onClose }: Props) {
  const { api } = usePage()
  const reason = useSignal('')
  const cancelling = useAction()
  const cancel = (): Promise<boolean> => {
    const why = reason.value.trim()
    const body: CancelRequest = why === '' ? {} : { reason: why }
    return cancelling.run(() => api.post<ActionDone>(`${pathOf(taskKey)}/cancel`, body))
  }
  return (
    <ConfirmDialog
      heading="Cancel this task?"
      title={title}
      action={cancelling}
      label="Cancel the task"
      refusal="Let it run"
      isDangerous
      onConfirm={cancel}
      onClose={onClose}
    >
      <label for="cancel-reason">
        Reason<span class="hint"> (optional)</span>
      </label>
      <textarea
        id="cancel-reason"
        rows={3}
        maxLength={1000}
        value={reason.value}
        onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
      />
    </ConfirmDialog>
  )
}
