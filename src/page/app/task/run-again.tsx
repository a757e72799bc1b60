/** Runs a task again. If the task has not ended, a person must confirm this, because both runs do the same work at the same time. */
import { useSignal } from '@preact/signals'
import type { ActionDone, PageTask, PageTaskDetail } from '../../wire.js'
import { addressOf } from '../addresses.js'
import { goTo } from '../current-address.js'
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { ConfirmDialog } from './confirm-dialog.js'
import { pathOf } from './use-task-detail.js'

export function RunAgain({ task, can }: { readonly task: PageTask; readonly can: PageTaskDetail['can'] }) {
  const { api, connection } = usePage()
  const isAsking = useSignal(false)
  const again = useAction()
  const { isBusy, error } = again.state.value
  const { key, kind, title, endedAt } = task
  const what =
    kind === 'async'
      ? 'a new task with the same goal and input, for the same owner'
      : 'a new task with the same commands, on the same instance'
  const isLive = endedAt === undefined
  const run = (): Promise<boolean> =>
    again.run(async () => {
      const made = await api.post<ActionDone>(`${pathOf(key)}/run-again`, {})
      if (made.key !== undefined) goTo(addressOf('task', made.key))
    })
  return (
    <>
      <button
        type="button"
        title={can.runAgain ? `Starts ${what}` : undefined}
        aria-disabled={isBusy}
        disabled={!can.runAgain || connection.value.state !== 'live'}
        aria-describedby={can.runAgain ? undefined : 'why-not-again'}
        onClick={() => (isLive ? (isAsking.value = true) : void run())}
      >
        {isLive && can.runAgain ? 'Run again …' : 'Run again'}
      </button>
      {error !== undefined && !isAsking.value && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      {isAsking.value && (
        <ConfirmDialog
          heading="Run this task a second time?"
          title={title}
          action={again}
          label="Start another one"
          refusal="Leave it"
          onConfirm={run}
          onClose={() => (isAsking.value = false)}
        >
          <p>
            {isLive ? 'The first task has not ended, and continues. ' : ''}This starts {what}. Whatever both tasks do
            happens twice.
          </p>
        </ConfirmDialog>
      )}
    </>
  )
}
