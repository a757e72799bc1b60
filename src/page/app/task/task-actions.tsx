/** The actions on a task. */
import { useSignal } from '@preact/signals'
import type { PageTask, PageTaskDetail } from '../../wire.js'
import { usePage } from '../page-state.js'
import { ActionButton } from '../shell/action-button.js'
import { CopyButton } from '../shell/copy-button.js'
import { visible } from '../text/visible.js'
import { CancelDialog } from './cancel-dialog.js'
import { RunAgain } from './run-again.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  /** The task in the latest event of the stream. It may have ended while `detail` is not up to date. */
  readonly task: PageTask
  readonly detail: PageTaskDetail | undefined
}

export function TaskActions({ task, detail }: Props) {
  const { connection } = usePage()
  const isAsking = useSignal(false)
  const isLost = connection.value.state !== 'live'
  if (!detail) return null
  const { can, copyAs } = detail
  // When this becomes false, the page removes the dialog and thereby closes it.
  const canCancel = can.cancel && task.endedAt === undefined
  return (
    <div class="actions" role="group" aria-label="Actions">
      <RunAgain task={task} can={can} />
      {can.detach === true && task.endedAt === undefined && (
        <ActionButton
          path={`${pathOf(task.key)}/detach`}
          label="Move to background"
          title="The call that waits for this task returns now. The result of the task is delivered later"
        />
      )}
      {can.conclude === true && task.endedAt === undefined && (
        <ActionButton
          path={`${pathOf(task.key)}/conclude`}
          label="Conclude now"
          title="Asks the run to return what it has. After its time to wrap up it is stopped"
        />
      )}
      {copyAs.curl !== undefined && <CopyButton text={copyAs.curl} label="Copy as curl" />}
      <CopyButton text={copyAs.typescript} label="Copy as TypeScript" />
      {canCancel && (
        <button
          type="button"
          class="danger apart"
          title="Asks for a reason first"
          disabled={isLost}
          onClick={() => (isAsking.value = true)}
        >
          Cancel …
        </button>
      )}
      {!can.runAgain && can.whyNot !== undefined && (
        <p id="why-not-again" class="hint">
          This task cannot run again. {visible(can.whyNot)}
        </p>
      )}
      {isAsking.value && canCancel && (
        <CancelDialog taskKey={task.key} title={task.title} onClose={() => (isAsking.value = false)} />
      )}
    </div>
  )
}
