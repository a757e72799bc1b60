/** Reports how many tasks an action has changed, and why it has not changed the others. */
import type { BulkReport } from '../../wire.js'
import { TaskLink } from '../task/task-facts.js'
import { count, counted } from '../text/format.js'
import { visible } from '../text/visible.js'
import type { BulkAction } from './bulk-keys.js'

interface Props {
  readonly action: BulkAction
  readonly result: BulkReport
  readonly onClose: () => void
}

export function BulkReportNotice({ action, result, onClose }: Props) {
  const { done, refused } = result
  return (
    <div class="bulk-report" role="status">
      <p>
        {counted(done, 'task')} {action === 'cancel' ? 'cancelled' : 'run again'}
        {refused.length === 0 ? '.' : `, ${count(refused.reduce((sum, one) => sum + one.count, 0))} not:`}
      </p>
      {refused.length > 0 && (
        <ul>
          {refused.map(({ error, count: many, keys }) => (
            <li key={error}>
              {count(many)} × {visible(error)}{' '}
              <details>
                <summary>{many > keys.length ? `The first ${keys.length}` : 'Which'}</summary>
                <ul class="links">
                  {keys.map((key) => (
                    <li key={key}>
                      <TaskLink taskKey={key} />
                    </li>
                  ))}
                </ul>
              </details>
            </li>
          ))}
        </ul>
      )}
      <button type="button" onClick={onClose}>
        Close the report
      </button>
    </div>
  )
}
