/**
 * The buttons that cancel all tasks that match the filter, or run them again. The page asks for confirmation, and then reports which tasks were refused.
 */
import { useSignal } from '@preact/signals'
import { MAX_BULK, type BulkReport, type BulkRequest, type PageTask } from '../../wire.js'
import { usePage } from '../page-state.js'
import { ConfirmDialog } from '../task/confirm-dialog.js'
import { count, counted } from '../text/format.js'
import { useAction } from '../use-action.js'
import { BulkReportNotice } from './bulk-report-notice.js'
import { bulkKeys, type BulkAction } from './bulk-keys.js'

interface Props {
  /** The tasks that match the filter, in the order of the table. */
  readonly tasks: readonly PageTask[]
}

interface Asked {
  readonly action: BulkAction
  /** The keys of the tasks when the dialog opened. The table may change while the dialog is open. */
  readonly keys: readonly string[]
  /** The number of tasks beyond the maximum of one request. */
  readonly more: number
}

const WORDS: Readonly<Record<BulkAction, { heading: string; label: string; refusal: string; explanation: string }>> = {
  cancel: {
    heading: 'Cancel',
    label: 'Cancel them',
    refusal: 'Let them run',
    explanation: 'This cancels all tasks that match the filter and have not ended.',
  },
  'run-again': {
    heading: 'Run again',
    label: 'Start them',
    refusal: 'Leave them',
    explanation: 'For each task that matches the filter and has ended, this starts a new task with the same input.',
  },
}

export function BulkActions({ tasks }: Props) {
  const { api, connection } = usePage()
  const asked = useSignal<Asked | undefined>(undefined)
  const reason = useSignal('')
  const report = useSignal<{ readonly action: BulkAction; readonly result: BulkReport } | undefined>(undefined)
  const acting = useAction()
  const isLost = connection.value.state !== 'live'
  const ask = (action: BulkAction): void => {
    const keys = bulkKeys(tasks, action)
    reason.value = ''
    asked.value = { action, keys: keys.slice(0, MAX_BULK), more: Math.max(0, keys.length - MAX_BULK) }
  }
  const act = ({ action, keys }: Asked): Promise<boolean> =>
    acting.run(async () => {
      const why = reason.value.trim()
      const request: BulkRequest = { action, keys, ...(action === 'cancel' && why !== '' && { reason: why }) }
      report.value = { action, result: await api.post<BulkReport>('/api/bulk', request) }
    })
  const { value: open } = asked
  const words = open && WORDS[open.action]
  return (
    <>
      <div class="actions bulk" role="group" aria-label="Actions on all tasks that are shown">
        {(['run-again', 'cancel'] as const).map((action) => {
          const many = bulkKeys(tasks, action).length
          return (
            many > 0 && (
              <button
                key={action}
                type="button"
                class={action === 'cancel' ? 'danger' : undefined}
                disabled={isLost}
                onClick={() => ask(action)}
              >
                {action === 'cancel' ? `Cancel ${count(many)} …` : `Run ${count(many)} again …`}
              </button>
            )
          )
        })}
      </div>
      {report.value && <BulkReportNotice {...report.value} onClose={() => (report.value = undefined)} />}
      {open && words && (
        <ConfirmDialog
          heading={`${words.heading}: ${counted(open.keys.length, 'task')}`}
          title={words.explanation}
          action={acting}
          label={words.label}
          refusal={words.refusal}
          isDangerous={open.action === 'cancel'}
          onConfirm={() => act(open)}
          onClose={() => (asked.value = undefined)}
        >
          {open.more > 0 && (
            <p>
              One request takes at most {count(MAX_BULK)} tasks: the first ones in the table. Repeat the action for{' '}
              {counted(open.more, 'further task')}.
            </p>
          )}
          {open.action === 'cancel' && (
            <>
              <label for="bulk-reason">
                Reason<span class="hint"> (optional)</span>
              </label>
              <textarea
                id="bulk-reason"
                rows={3}
                maxLength={1000}
                value={reason.value}
                onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
              />
            </>
          )}
        </ConfirmDialog>
      )}
    </>
  )
}
