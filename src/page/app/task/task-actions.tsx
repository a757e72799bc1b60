/** What can be done with a task. */
import { useSignal } from '@preact/signals'
import type { ActionDone, PageTaskDetail } from '../../wire.js'
import { addressOf } from '../addresses.js'
import { goTo } from '../current-address.js'
import { usePage } from '../page-state.js'
import { CopyButton } from '../shell/copy-button.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { CancelDialog } from './cancel-dialog.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly taskKey: string
  readonly detail: PageTaskDetail | undefined
}

export function TaskActions({ taskKey, detail }: Props) {
  const { api, connection } = usePage()
  const isAsking = useSignal(false)
  const again = useAction()
  const isLost = connection.value.state !== 'live'
  const { isBusy, error } = again.state.value
  if (!detail) return null
  const { can, copyAs } = detail
  const runAgain = (): Promise<boolean> =>
    again.run(async () => {
      const { key } = await api.post<ActionDone>(`${pathOf(taskKey)}/run-again`, {})
      if (key !== undefined) goTo(addressOf('task', key))
    })
  return (
    <div class="actions" role="group" aria-label="Actions">
      {can.cancel && (
        <button type="button" class="danger" disabled={isLost} onClick={() => (isAsking.value = true)}>
          Cancel …
        </button>
      )}
      <button
        type="button"
        disabled={!can.runAgain || isBusy || isLost}
        aria-describedby={can.runAgain ? undefined : 'why-not-again'}
        onClick={() => void runAgain()}
      >
        Run again
      </button>
      {copyAs.curl !== undefined && <CopyButton text={copyAs.curl} label="Copy as curl" />}
      <CopyButton text={copyAs.typescript} label="Copy as TypeScript" />
      {!can.runAgain && can.whyNot !== undefined && (
        <p id="why-not-again" class="hint">
          It cannot run again: {visible(can.whyNot)}
        </p>
      )}
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      {isAsking.value && (
        <CancelDialog taskKey={taskKey} title={detail.task.title} onClose={() => (isAsking.value = false)} />
      )}
    </div>
  )
}
